"""Quantised networks of every kind of model: their files, and that they are what was quantised."""

import importlib.util

import pytest
import torch

from fedstage.algorithm.one_shot.client_models import example
from fedstage.data.bags import Bags
from fedstage.models.initialisation import initialise
from fedstage.models.loading import build
from fedstage.randomness import torch_generator
from fedstage.settings.models import (
    Bert,
    DeepMil,
    DistilBert,
    EmbeddingBag,
    LogisticRegression,
    Lstm,
    ResNet,
    ResNetWide,
)

pytest.importorskip("torchao", reason="torchao, of the extra `int8`, is not installed")
int8 = pytest.importorskip("fedstage.models.int8")

FEATURES, IMAGES = (13,), (3, 16, 16)
SIZE = {"vocabulary": 50, "layers": 1, "heads": 2, "width": 8, "hidden": 16, "positions": 12}
MODELS = {
    "logistic_regression": (LogisticRegression(name="logistic_regression", outputs=1), FEATURES, 2),
    "resnet8": (ResNet(name="resnet8", norm="batch"), IMAGES, 10),
    "deep_mil": (DeepMil(name="deep_mil", width=8), FEATURES, 2),
    "distilbert": (DistilBert(name="distilbert", **SIZE), (10,), 4),
    "bert": (Bert(name="bert", **SIZE), (10,), 4),
    "embedding_bag": (EmbeddingBag(name="embedding_bag", vocabulary=50, embedding=8), (10,), 4),
    "lstm": (Lstm(name="lstm", vocabulary=50, embedding=8, hidden=8), (10,), 4),
}


def network(name, seed=0):
    if name in ("distilbert", "bert") and importlib.util.find_spec("transformers") is None:
        pytest.skip("transformers, of the extra `text`, is not installed")
    settings, shape, classes = MODELS[name]
    model = build(settings, shape, classes)
    initialise(model, torch_generator(seed, "weights"))
    return model.eval()


def samples(name, number, seed=0):
    shape, generator = MODELS[name][1], torch_generator(seed, "samples", number)
    if name in ("distilbert", "bert", "lstm", "embedding_bag"):
        return torch.randint(0, 50, (number, *shape), generator=generator, dtype=torch.int32)
    if name == "deep_mil":
        instances = torch.randn(7 * number, *shape, generator=generator)
        return Bags(instances, torch.arange(0, 7 * number + 1, 7))
    return torch.randn(number, *shape, generator=generator)


def batch(of):
    return of.padded() if isinstance(of, Bags) else of


def quantised(name):
    seen = samples(name, 20)
    return int8.quantise(network(name), example(seen), [batch(seen)])


@pytest.mark.parametrize("name", MODELS)
def test_a_network_of_its_file_says_about_what_the_model_says(name):
    tensors, asked = quantised(name), samples(name, 30, seed=1)
    restored = int8.restore(network(name, seed=9), example(asked), tensors)
    with torch.no_grad():
        exact, found = network(name)(batch(asked)), restored(batch(asked))
        single = restored(batch(asked)[:1])
    assert found.shape == exact.shape
    off = (found - exact).abs().max()
    assert 0 < off < 0.1 * exact.abs().max()
    assert torch.allclose(single, found[:1], atol=1e-5)
    restored.eval()  # exported graphs refuse it, unless they are told


def test_a_restored_network_has_the_numbers_of_the_file():
    tensors = quantised("resnet8")
    fresh, asked = network("resnet8", seed=9), example(samples("resnet8", 2))
    restored = int8.restore(fresh, asked, tensors)
    state = restored.state_dict().values()
    kept = [value for value in state if value.dtype == torch.int8]
    sent = [value for value in tensors.values() if value.dtype == torch.int8]
    assert len(kept) == len(sent) == 8
    assert all(any(torch.equal(one, other) for other in sent) for one in kept)


def test_every_weight_of_a_layer_is_int8_and_every_range_counted():
    tensors = quantised("distilbert")
    kinds = {name: value.dtype for name, value in tensors.items()}
    layers = [name for name in kinds if kinds[name] == torch.int8]
    assert len(layers) == 2 + 6 + 2  # embeddings of pieces and places, a block, the classifier
    assert int8.ranges(tensors) == 8
    assert {name + int8.SCALE for name in layers} <= kinds.keys()
    assert set(kinds.values()) == {torch.int8, torch.uint8, torch.float32}


def size(tensors):
    return sum(value.numel() * value.element_size() for value in tensors.values())


def test_an_int8_model_has_a_quarter_of_the_bytes():
    """Of FENS's ResNet-8, as narrow as its downsized ones."""
    model = build(ResNetWide(name="resnet8_wide", width=28), (3, 32, 32), 10)
    initialise(model, torch_generator(0, "weights"))
    seen = torch.zeros(2, 3, 32, 32)
    tensors = int8.quantise(model, seen, [seen])
    ratio = size(tensors) / size(model.state_dict())
    assert 0.25 < ratio < 0.26
