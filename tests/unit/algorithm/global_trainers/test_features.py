"""What clients send of their samples, what the server says of them, and what it minimises."""

from types import SimpleNamespace

import pytest
import torch
from tests.shared.settings import federated

from fedstage.algorithm.global_trainers import features
from fedstage.algorithm.global_trainers.features import targets_of, train_server, upload
from fedstage.models.heads import joined
from fedstage.models.initialisation import initialise
from fedstage.models.loading import new_model, state_of
from fedstage.randomness import torch_generator
from fedstage.settings.recipes import Recipe
from fedstage.training.images import normalise

UPPER = {"resnet_upper": {"blocks": 1, "width": 2}}
LOWER = {"resnet_lower": {"blocks": 1, "width": 2}}
INFO = {"shape": [1, 8, 8], "classes": 3, "mean": [0.5], "std": [0.25]}
RECIPE = Recipe.model_validate(
    federated(
        model=UPPER,
        architectures=[UPPER, LOWER],
        global_models=2,
        server_model=True,
        local={"gkt": {"alpha": 0.5, "temperature": 2.0}},
        server={"steps": 3, "batch_size": 4, "learning_rate": 0.1},
        numerics={"device": "cpu"},
    )
)
#: More than a batch of inference.
COUNT = 130


def a_model(number):
    """Return a model whose running statistics are not those of its samples."""
    model = new_model(RECIPE.architectures[number], INFO, torch.device("cpu"))
    initialise(model, torch_generator(number, "weights"))
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.fill_(0.2)
    return model


@pytest.fixture
def world():
    drawn = torch.randint(0, 256, (COUNT, 1, 8, 8), generator=torch_generator(0, "images"))
    images, labels = drawn.to(torch.uint8), torch.arange(COUNT) % 3
    return SimpleNamespace(images=images, labels=labels, model=a_model(1), server=a_model(0))


@torch.no_grad()
def test_each_sample_is_sent_in_its_place_as_the_client_sees_it_after_training(world):
    found, targets = upload(world.model.train(), world.images, world.labels, RECIPE, INFO)
    assert found.shape == (COUNT, 2, 8, 8)
    world.model.eval()
    pixels = normalise(world.images, INFO)
    for n in (0, 1, 99, 100, COUNT - 1):
        own = world.model.body(pixels[n : n + 1])
        torch.testing.assert_close(found[n : n + 1], own)
        torch.testing.assert_close(targets[n, 1:], world.model(pixels[n : n + 1])[0])
    assert torch.equal(targets[:, 0].long(), world.labels)


@torch.no_grad()
def test_the_server_says_of_each_sample_what_it_sees_behind_the_extractor(world):
    world.server.train()
    targets = targets_of(
        world.model, world.images, world.labels, server=world.server, recipe=RECIPE, info=INFO
    )
    pixels = normalise(world.images, INFO)
    for n in (0, 1, 99, 100, COUNT - 1):
        alone = world.server.eval()(world.model.eval().body(pixels[n : n + 1]))
        torch.testing.assert_close(targets[n, 1:], alone[0])
        torch.testing.assert_close(joined(world.model, world.server)(pixels[n : n + 1]), alone)
    assert torch.equal(targets[:, 0].long(), world.labels)


def test_the_server_learns_from_what_all_have_sent_one_after_the_other(world, monkeypatch):
    given = {}

    def teach(model, lesson, loss, server, *others):
        given.update(samples=lesson.images, targets=lesson.targets, key=others[2])
        return {}, {}

    monkeypatch.setattr(features, "teach", teach)
    uploads = [
        upload(world.model, world.images[part], world.labels[part], RECIPE, INFO)
        for part in (slice(0, 5), slice(5, 12))
    ]
    train_server(world.server, uploads, RECIPE, INFO, 4)
    together = upload(world.model, world.images[:12], world.labels[:12], RECIPE, INFO)
    torch.testing.assert_close(given["samples"], together[0])
    torch.testing.assert_close(given["targets"], together[1])
    assert given["key"] == (0, "feature_training", 4)


def test_the_servers_model_is_trained_and_the_features_are_not_normalised_again(world):
    sent = upload(world.model, world.images, world.labels, RECIPE, INFO)
    start = state_of(world.server)
    weights, learnt = train_server(world.server, [sent], RECIPE, INFO, 1)
    assert weights.keys() == start.keys()
    assert not torch.equal(weights["linear.weight"], start["linear.weight"])
    again = train_server(a_model(0), [sent], RECIPE, {**INFO, "mean": [9.0]}, 1)
    assert learnt == again[1]
