"""FedNova (Wang et al. 2020): clients that take more steps do not count more.

A client's change w_i - w_start is the learning rate times a sum of the gradients of its steps, with
weights that sum to ||a_i||_1. The server takes the mean of the changes per unit of that mass,

    w <- w_start + tau_eff sum_i p_i (w_i - w_start) / ||a_i||_1    tau_eff = sum_i p_i ||a_i||_1

so that the fixed point is the one of the weighted loss, however many steps each client takes. A
client sends its mass in addition to its weights. Where all masses are equal, this is FedAvg.

The global momentum of the released code is the server optimiser ``momentum`` with a rate of 1.
"""

from collections.abc import Sequence

import torch

from fedstage.algorithm.local_trainers import LocalTrainer, Trained
from fedstage.settings.local_training import FedNova
from fedstage.settings.optimisation import Client
from fedstage.training.optimisers import factor
from fedstage.weights import Tensors, Weights

_MASS = "gradient_mass"


class Trainer(LocalTrainer[FedNova]):
    """FedAvg whose server divides each change by its gradient mass."""

    def payload(self, trained: Trained, state: Tensors, client: int) -> Weights:
        """Return ||a_i||_1, one number."""
        return {_MASS: torch.tensor(gradient_mass(trained.client, trained.outcome.steps))}

    def scales(self, payloads: Sequence[Tensors], shares: Sequence[float]) -> list[float]:
        """Return tau_eff / ||a_i||_1 of each participant; 0 for one that has taken no step."""
        masses = [float(payload[_MASS]) for payload in payloads]
        effective = sum(share * mass for share, mass in zip(shares, masses, strict=True))
        return [effective / mass if mass else 0.0 for mass in masses]


def gradient_mass(client: Client, steps: int) -> float:
    """Return ||a_i||_1: the distance of `steps` steps along a gradient of 1, in learning rates.

    It is summed step by step, with the schedule's factors and with momentum, Nesterov's or not. For
    a constant rate it is tau = `steps` without momentum and (tau - rho (1 - rho^tau) / (1 - rho)) /
    (1 - rho) with momentum. Weight decay is part of a gradient, as in the released code. Momentum
    starts at 0 in each round.
    """
    momentum, mass = 0.0, 0.0
    for step in range(steps):
        momentum = client.momentum * momentum + 1.0
        along = 1.0 + client.momentum * momentum if client.nesterov else momentum
        mass += factor(client.schedule, step, steps) * along
    return mass
