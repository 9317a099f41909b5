"""What happens to a plugin's model with each layer of torch: it works, or one line refuses it."""

import inspect
import json
import re

import pytest
import torch
from tests.shared.plugins import loaded
from tests.shared.stages import initial_model
from torch import nn

from fedstage.errors import FedstageError
from fedstage.models.loading import fill_model, new_model
from fedstage.storage.files import save_json
from fedstage.storage.tensors import load_tensors

PLUGIN = """
from typing import Literal

from torch import nn
from torch.nn.functional import adaptive_avg_pool1d

from fedstage.settings.models import Headed
from tests.unit.models.test_torch_modules import called, made


class OneLayer(Headed):
    name: Literal["one_layer"]
    layer: str


class Wrapped(nn.Module):
    def __init__(self, name, classes):
        super().__init__()
        self.kind, self.layer, self.last = name, made(name), nn.Linear(8, classes)

    def forward(self, x):
        seen = called(self.kind, self.layer, x.flatten(1))
        return self.last(adaptive_avg_pool1d(seen.reshape(len(x), 1, -1), 8)[:, 0])


def network(settings, shape, classes):
    return Wrapped(settings.layer, classes)
"""
INFO = {"shape": [1, 8, 8], "classes": 10, "mean": [0.5], "std": [0.5]}

LAYERS = {
    name: kind
    for name, kind in sorted(vars(nn).items())
    if isinstance(kind, type) and issubclass(kind, nn.Module)
}
#: Values of arguments without a default, by their names.
SMALL = {
    "cutoffs": [4], "d_model": 8, "dim": 1, "downscale_factor": 2, "embed_dim": 8,
    "embedding_dim": 4, "groups": 2, "hidden_size": 4, "in1_features": 64, "in2_features": 64,
    "in_channels": 4, "in_features": 64, "input_size": 8, "kernel_size": 2, "n_classes": 10,
    "nhead": 2, "norm_type": 2, "normalized_shape": 64, "num_channels": 4, "num_classes": 10,
    "num_embeddings": 9, "num_features": 4, "num_groups": 2, "num_heads": 2, "num_layers": 1,
    "out_channels": 4, "out_features": 8, "output_size": 1, "padding": 1, "size": 2,
    "threshold": 0.1, "unflattened_size": (8, 8), "upscale_factor": 2, "value": 0.0,
}  # fmt: skip
OF_LAYER = {
    "Fold": {"output_size": 5},
    "LocalResponseNorm": {"size": 2},
    "MultiheadAttention": {"batch_first": True},
    "Transformer": {
        "d_model": 8,
        "nhead": 2,
        "num_encoder_layers": 1,
        "num_decoder_layers": 1,
        "dim_feedforward": 8,
        "batch_first": True,
    },
    "TransformerDecoder": {"decoder_layer": nn.TransformerDecoderLayer(8, 2, 8, batch_first=True)},
    "TransformerEncoder": {"encoder_layer": nn.TransformerEncoderLayer(8, 2, 8, batch_first=True)},
    "DataParallel": {"module": nn.Linear(64, 4)},
    **{name: {"size": 5} for name in ("Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d")},
    **{name: {"input_size": 8, "hidden_size": 4} for name in ("GRU", "LSTM", "RNN")},
    **{f"FractionalMaxPool{n}d": {"output_size": 1, "kernel_size": 1} for n in (2, 3)},
}
#: Shapes in which layers take the 64 numbers of a sample, by the end of their names.
MAPS = {
    **dict.fromkeys(("1d", "BatchNorm"), (4, 16)),
    **dict.fromkeys(("2d", "Shuffle", "Unshuffle", "GroupNorm", "Upsample"), (4, 4, 4)),
    **dict.fromkeys(("3d",), (4, 4, 2, 2)),
    **dict.fromkeys(("GRU", "LSTM", "RNN", "ResponseNorm", "Attention", "Coder"), (8, 8)),
    **dict.fromkeys(("Transformer", "Decoder", "Encoder", "coderLayer"), (8, 8)),
    "Fold": (4, 16),
    "Unfold": (4, 4, 4),
}
#: How a layer is called, if not with the samples alone.
CALLS = {
    "AdaptiveLogSoftmaxWithLoss": lambda layer, x: layer.log_prob(x),
    "Bilinear": lambda layer, x: layer(x, x),
    "CTCLoss": lambda layer, x: layer(
        x.view(8, -1, 8).log_softmax(2),
        CLASSES[len(x)][:, None],
        torch.full((len(x),), 8),
        torch.ones(len(x), dtype=torch.int64),
    ),
    "CosineEmbeddingLoss": lambda layer, x: layer(x, x, torch.ones(len(x))),
    "CosineSimilarity": lambda layer, x: layer(x, x),
    "Embedding": lambda layer, x: layer(x.long()),
    "EmbeddingBag": lambda layer, x: layer(x.long()),
    "GRUCell": lambda layer, x: layer(x[:, :8]),
    "GaussianNLLLoss": lambda layer, x: layer(x, x, torch.ones_like(x)),
    "LSTMCell": lambda layer, x: layer(x[:, :8]),
    "LinearCrossEntropyLoss": lambda layer, x: layer(x, CLASSES[len(x)]),
    "MarginRankingLoss": lambda layer, x: layer(x, x, torch.ones_like(x)),
    "MultiheadAttention": lambda layer, x: layer(x, x, x),
    "NLLLoss2d": lambda layer, x: layer(x, torch.ones(len(x), 4, 4, dtype=torch.int64)),
    "PairwiseDistance": lambda layer, x: layer(x, x),
    "RNNCell": lambda layer, x: layer(x[:, :8]),
    "Transformer": lambda layer, x: layer(x, x),
    "TransformerDecoder": lambda layer, x: layer(x, x),
    "TransformerDecoderLayer": lambda layer, x: layer(x, x),
    "TripletMarginLoss": lambda layer, x: layer(x, x, x + 1),
    "TripletMarginWithDistanceLoss": lambda layer, x: layer(x, x, x + 1),
    **{
        f"MaxUnpool{n}d": lambda layer, x: layer(x, torch.zeros_like(x, dtype=torch.int64))
        for n in (1, 2, 3)
    },
    **dict.fromkeys(
        ("CrossEntropyLoss", "MultiMarginLoss", "NLLLoss"),
        lambda layer, x: layer(x, CLASSES[len(x)]),
    ),
    "MultiLabelMarginLoss": lambda layer, x: layer(x, torch.zeros_like(x, dtype=torch.int64)),
}
CLASSES = {n: torch.ones(n, dtype=torch.int64) for n in (1, 2)}
#: Containers, which are not called, and bases of other classes.
HELD = ("Container", "Module", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList",
        "RNNBase", "RNNCellBase")  # fmt: skip
#: What is refused, and the ends of messages.
REFUSED = {
    name: f"layer: {name}: must be given its sizes, which follow from shape and classes"
    for name in LAYERS
    if name.startswith("Lazy")
}


def made(name):
    """Return a small layer."""
    kind = LAYERS[name]
    if name in HELD:
        return nn.Module() if name.startswith("RNN") else kind()
    needed = [
        key
        for key, one in inspect.signature(kind.__init__).parameters.items()
        if one.default is one.empty and key in SMALL
    ]
    given = {key: SMALL[key] for key in needed} | OF_LAYER.get(name, {})
    if "reduction" in inspect.signature(kind.__init__).parameters:
        given["reduction"] = "none"
    return kind(**given)


def called(name, layer, x):
    """Return what a layer makes of samples [n, 64]."""
    if name in HELD:
        return x
    for end, shape in MAPS.items():
        if name.endswith(end):
            x = x.view(-1, *shape)
    if name in CALLS:
        seen = CALLS[name](layer, x)
    else:
        seen = layer(x, x.sigmoid()) if name.endswith("Loss") else layer(x)
    while isinstance(seen, tuple):
        seen = seen[0]
    return seen


@pytest.fixture(scope="module")
def kinds(tmp_path_factory):
    folder = tmp_path_factory.mktemp("torch")
    with loaded(folder / "one_layer.py", PLUGIN) as kinds:
        yield kinds, folder


@pytest.fixture
def weights(kinds):
    def draw(name, group):
        folder = kinds[1]
        save_json(folder / "info.json", INFO)
        initial_model(
            settings=json.dumps({"model": {"name": "one_layer", "layer": name}, "seed": 0}),
            group=group, info=folder / "info.json", output=folder / "weights",
        )  # fmt: skip
        return load_tensors(folder / "weights")[0]

    return draw


@pytest.mark.parametrize("name", sorted(LAYERS.keys() - REFUSED.keys()))
def test_a_layer_works(kinds, weights, name):
    first, again, other = (weights(name, group) for group in (0, 0, 1))
    assert first.keys() == other.keys()
    assert all(torch.equal(first[key], again[key]) for key in first)
    assert not torch.equal(first["last.weight"], other["last.weight"])
    model = new_model(
        kinds[0]["one_layer"](name="one_layer", layer=name), INFO, torch.device("cpu")
    )
    fill_model(model, first, kinds[1])
    model(torch.rand(2, 1, 8, 8)).sum().backward()
    assert model.last.weight.grad.isfinite().all()


@pytest.mark.parametrize("name", REFUSED)
def test_a_layer_is_refused_in_a_line(weights, name):
    with pytest.raises(FedstageError, match=re.escape(REFUSED[name])) as caught:
        weights(name, 0)
    assert "\n" not in str(caught.value)
