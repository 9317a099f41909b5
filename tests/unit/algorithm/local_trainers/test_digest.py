"""What a client starts from and learns where clients exchange logits."""

from typing import NamedTuple

import pytest
import torch
from tests.shared.settings import federated

from fedstage.algorithm.global_trainers import digestion
from fedstage.algorithm.global_trainers.students import read_lesson
from fedstage.algorithm.local_trainers import local_trainer
from fedstage.models.loading import new_model, state_of
from fedstage.settings.models import LogisticRegression
from fedstage.settings.recipes import Recipe
from fedstage.storage.tensors import save_tensors

MODEL = LogisticRegression(name="logistic_regression")
INFO = {"shape": [1, 2, 2], "classes": 3, "mean": [0.0], "std": [1.0]}
SERVER = {"steps": 4, "batch_size": 6, "learning_rate": 0.5}
RECIPE = Recipe.model_validate(
    federated(
        data={"digits": {"held_out": 6}},
        model="logistic_regression",
        local="digest",
        ensemble="clients",
        distillation="l1",
        server=SERVER,
        numerics={"device": "cpu"},
    )
)


class Said(NamedTuple):
    """What others said: files of logits, and of the samples that they are of."""

    logits: list
    public: object


@pytest.fixture
def said(tmp_path):
    """Return what two clients of round 1 said about six public images."""
    images = torch.arange(24, dtype=torch.uint8).reshape(6, 1, 2, 2) * 10
    public, logits = tmp_path / "public.safetensors", tmp_path / "logits.safetensors"
    save_tensors(public, {"images": images}, {})
    spoken = torch.randn(2, 6, 3, generator=torch.Generator().manual_seed(0))
    notes = {"round": 1, "group": 0, "samples": [5, 5], "members": "clients"}
    save_tensors(logits, {"logits": spoken}, notes)
    return Said([logits], public)


def fresh(value=0.0):
    model = new_model(MODEL, INFO, torch.device("cpu"))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(value)
    return model


def prepared(recipe, state, client, round_, said, model=None):
    model = model or fresh()
    local_trainer(recipe.local).prepare(model, state, client)
    if said is not None:
        digestion.digest(model, recipe, said.logits, said.public, client, round_, INFO)
    return state_of(model)


def constant(value, client):
    return {f"client/{client}/{name}": one for name, one in state_of(fresh(value)).items()}


def test_it_digests_what_others_said_from_its_own_model_on(said):
    from_start = prepared(RECIPE, {}, 1, 2, said)
    from_own = prepared(RECIPE, constant(0.5, 1), 1, 2, said)
    zero = state_of(fresh())
    assert not any(torch.equal(value, zero[name]) for name, value in from_start.items())
    assert not any(torch.equal(value, from_own[name]) for name, value in from_start.items())


def test_a_client_learns_what_the_server_learns(said, monkeypatch):
    """Targets and samples are those of the round before, in which the server had them."""
    seen = []

    def watched(*arguments):
        seen.append((arguments[3], read_lesson(*arguments)))
        return seen[-1][1]

    monkeypatch.setattr(digestion, "read_lesson", watched)
    some = Recipe.model_validate(
        RECIPE.model_dump(by_alias=True)
        | {"server": SERVER | {"samples_a_round": 3, "batch_size": 3}}
    )
    for client in (1, 3):
        prepared(some, {}, client, 2, said)
    (round_, one), (other_round, other) = seen
    assert round_ == other_round == 1
    assert torch.equal(one.targets, other.targets)
    assert len(one.images) == len(one.targets) == 3


@pytest.mark.parametrize(("after", "buffered"), [(0, True), (1, True), (2, False)])
def test_a_client_that_digests_can_have_a_buffer_from_a_round_on(said, after, buffered):
    def digested(**changes):
        server = SERVER | {"learning_rate": 0.5} | changes
        recipe = Recipe.model_validate(RECIPE.model_dump(by_alias=True) | {"server": server})
        return prepared(recipe, {}, 1, 2, said)

    plain, found = digested(), digested(buffer={"weight": 5.0, "after": after})
    assert all(torch.equal(value, found[name]) for name, value in plain.items()) != buffered
