"""A small network on all logits: f(z) = W_2^T relu(W_1^T z), z = concat(z_1 ... z_M) (FENS, NN).

W_1 is [MC, k] and W_2 [k, C]: 8,400 numbers for 20 clients, 10 classes and k = 40. The paper's
equation has no biases; the released code has k and C of them. The paper does not specify the
initialisation: here weights and biases are drawn from U(-1/sqrt(fan_in), 1/sqrt(fan_in)), as in
PyTorch's linear layers.
"""

from itertools import pairwise
from math import sqrt

import torch

from fedstage.algorithm.one_shot.aggregators import Knowledge
from fedstage.settings.aggregators import Mlp
from fedstage.weights import Weights


def parameters(settings: Mlp, known: Knowledge, generator: torch.Generator) -> Weights:
    """Return W_1 and W_2 as ``weight1`` and ``weight2``; optionally ``bias1`` and ``bias2``."""
    drawn: Weights = {}
    sizes = (known.members * known.classes, settings.hidden, known.classes)
    for layer, (inputs, outputs) in enumerate(pairwise(sizes), start=1):
        shapes = {"weight": (inputs, outputs)} | ({"bias": (outputs,)} if settings.biases else {})
        bound = 1 / sqrt(inputs)
        for part, shape in shapes.items():
            empty = torch.empty(shape)
            drawn[f"{part}{layer}"] = empty.uniform_(-bound, bound, generator=generator)
    return drawn


def combine(
    settings: Mlp, parameters: Weights, logits: torch.Tensor, pixels: torch.Tensor | None
) -> torch.Tensor:
    """Return the output [n, C] of the network for the concatenated logits [n, MC]."""
    hidden = _layer(parameters, 1, logits.transpose(0, 1).flatten(1)).relu()
    return _layer(parameters, 2, hidden)


def _layer(parameters: Weights, number: int, inputs: torch.Tensor) -> torch.Tensor:
    outputs = inputs @ parameters[f"weight{number}"]
    bias = parameters.get(f"bias{number}")
    return outputs if bias is None else outputs + bias
