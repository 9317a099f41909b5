"""The public samples of a round, and what is taught about them."""

import torch
from tests.shared.settings import federated

from fedstage.algorithm.ensemble_trainers import Members
from fedstage.algorithm.global_trainers.students import lesson
from fedstage.settings.recipes import Recipe

N, CLASSES = 40, 3
IMAGES = torch.arange(N, dtype=torch.float32)[:, None]
SERVER = {"steps": 1, "batch_size": 8, "learning_rate": 0.1}


def a_recipe(samples=None, seed=0, **changes):
    raw = federated(
        model="logistic_regression",
        ensemble="clients",
        distillation="l1",
        server=SERVER | {"samples_a_round": samples},
        seed=seed,
        **{"global": "basic"},
    )
    return Recipe.model_validate(raw | changes)


def member(round_, group, value):
    """Return a model whose logits of a sample are its number and the model's value."""
    logits = IMAGES[None].repeat(1, 1, CLASSES) + value
    return Members(round_, group, logits, (5,), "clients")


MEMBERS = [member(1, 1, 4.0), member(1, 0, 2.0)]


def numbers(samples=None, round_=1, members=MEMBERS, **changes):
    found = lesson(a_recipe(samples, **changes), members, IMAGES, round_)
    assert torch.equal(
        found.targets, (found.images + 3.0).expand(-1, CLASSES)
    )  # of the same samples
    return found.images[:, 0].int().tolist()


def test_a_round_has_as_many_samples_as_asked_for_each_once_and_in_their_order():
    found = numbers(12)
    assert len(set(found)) == 12
    assert found == sorted(found) != list(range(12))


def test_everybody_in_a_round_has_the_same_samples_and_the_next_round_has_others():
    """Server and clients ask with their own members in any order, at other times."""
    assert numbers(12) == numbers(12, members=MEMBERS[::-1])
    assert numbers(12, round_=2) != numbers(12)
    assert numbers(12, seed=1) != numbers(12)
    # Neither what the clients train by nor how students learn moves the draw.
    assert numbers(12, local="fedprox", ensemble={"clients": {"weights": "samples"}}) == numbers(12)
