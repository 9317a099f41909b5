"""Dropout of the package's architectures: in training, nowhere else, and in every digest."""

import importlib.util

import pytest
import torch
from tests.shared.settings import federated

from fedstage.models.initialisation import initialise
from fedstage.models.loading import build
from fedstage.protocol.digests import canonical
from fedstage.randomness import seed_globals, torch_generator
from fedstage.settings.models import Bert, DistilBert, EfficientNet, InitialModel
from fedstage.settings.recipes import Recipe
from fedstage.training.passes import PLAIN, compute_logits, forward

SMALL = {"vocabulary": 50, "layers": 2, "heads": 2, "width": 8, "hidden": 16, "positions": 12}
TEXTS = (
    (10,), torch.randint(1, 50, (6, 10), dtype=torch.int32, generator=torch_generator(1)),
    {"mean": [], "std": []},
)  # fmt: skip
IMAGES = (
    (3, 32, 32), torch.randint(256, (6, 3, 32, 32), generator=torch_generator(1)).to(torch.uint8),
    {"mean": [0.5] * 3, "std": [0.2] * 3},
)  # fmt: skip
MODELS = [
    pytest.param(
        settings,
        marks=pytest.mark.skipif(
            settings.package is not None and importlib.util.find_spec(settings.package) is None,
            reason="transformers, of the extra `text`, is not installed",
        ),
        id=settings.name,
    )
    for settings in (
        Bert(name="bert", **SMALL),
        DistilBert(name="distilbert", **SMALL),
        EfficientNet(name="efficientnet_b0"),
    )
]


@pytest.fixture
def passes():
    """A function that gives two training passes of a model, and its logits in evaluation twice."""

    def of(settings):
        shape, samples, info = IMAGES if settings.name == "efficientnet_b0" else TEXTS
        model = build(settings, shape, 4)
        initialise(model, torch_generator(0, "weights"))
        logits = [compute_logits(model, samples, info) for _ in range(2)]
        model.train()
        taken = []
        for turn in range(3):
            seed_globals("a pass", turn % 2)
            pixels = samples.float() / 255 if len(shape) == 3 else samples
            taken.append(forward(model, pixels, PLAIN).detach())
        return taken, logits

    return of


@pytest.mark.parametrize("settings", MODELS)
def test_only_training_drops_and_by_the_global_seed(passes, settings):
    (first, second, again), (logits, same) = passes(settings)
    assert not torch.equal(first, second)
    assert torch.equal(first, again)
    assert torch.equal(logits, same)


@pytest.mark.parametrize("settings", MODELS)
def test_the_share_zero_drops_nothing(passes, settings):
    none = settings.model_copy(update={"dropout": 0.0})
    (first, second, _), (logits, _) = passes(none)
    assert torch.equal(first, second)
    assert torch.equal(logits, passes(settings)[1][0])


def test_no_digest_leaves_dropout_out():
    """Files that were made when these models had no dropout are never taken for ones with it."""
    for kind in (Bert, DistilBert, EfficientNet):
        for share in (0.0, 0.1, 0.2, 0.3):
            start = InitialModel(model=kind(name=kind.names()[0], dropout=share), seed=0)
            assert canonical(start)["model"]["dropout"] == share


def test_recorded_steps_draw_nothing():
    graphs = {"device": "cuda", "cuda_graphs": True}
    recipe = federated(
        model="efficientnet_b0", numerics=graphs, data={"cifar10": {"held_out": 100}}
    )
    fault = "numerics.cuda_graphs = true: needs training steps .* not model.dropout = 0.2"
    with pytest.raises(ValueError, match=fault):
        Recipe.model_validate(recipe)
    Recipe.model_validate(recipe | {"model": {"efficientnet_b0": {"dropout": 0}}})
