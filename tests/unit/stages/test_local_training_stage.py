"""Clients of a job that train side by side: the bytes of each are those that it has alone."""

import random

import numpy as np
import pytest
import torch
from tests.shared import stages
from tests.shared.settings import federated
from torch.nn.functional import cross_entropy

from fedstage.plan import data_files
from fedstage.plan.graph import recipe_file
from fedstage.plan.training import global_model
from fedstage.plan.training_folder import training_folder
from fedstage.protocol.groups import group_participants
from fedstage.settings.equivalences import simplest
from fedstage.settings.recipes import Recipe
from fedstage.stages import local_training
from fedstage.storage.planned import write_recipe
from fedstage.storage.tensors import load_tensors
from fedstage.training import batches

CLIENTS = 5
CNN = {"name": "cnn_small", "width": 2, "hidden": 6, "norm": "batch"}
BASE = federated(
    data={"digits": {"test": 1500, "held_out": 100}},
    clients=CLIENTS,
    partition={"dirichlet": {"alpha": 0.3, "min_samples": 4}},
    participants=CLIENTS,
    model=CNN,
    client={"epochs": 2, "batch_size": 16, "learning_rate": 0.05},
    numerics={"device": "cpu"},
    seed=1,
)
AUGMENTED = {"momentum": 0.9, "augmentation": "crop_flip", "clip_norm": 1.0}


@pytest.fixture
def prepare(tmp_path, monkeypatch):
    """A function that makes what the first round of a recipe reads."""
    monkeypatch.chdir(tmp_path)

    def make(**changes):
        recipe = simplest(Recipe.model_validate(BASE | changes))
        stages.make_data(recipe)
        write_recipe(recipe_file(training_folder(recipe)), recipe)
        return recipe

    return make


def inputs(recipe, tmp_path):
    return {
        "recipe": tmp_path / f"{training_folder(recipe)}/recipe.yaml",
        "round": 1,
        "group": 0,
        "data": tmp_path / data_files.data_file(recipe.data, "train"),
        "info": tmp_path / data_files.data_file(recipe.data, "info"),
        "clients": tmp_path / data_files.clients_table(recipe),
        "participation": tmp_path / data_files.participation_table(recipe, 1),
        "start": tmp_path / global_model(recipe, 0, 0),
    }


def alone(recipe, tmp_path):
    """Return the updates of clients that train in a job each."""
    updates = []
    for participant in group_participants(recipe, 0):
        output = tmp_path / f"alone_{participant}.safetensors"
        stages.local_training(
            **inputs(recipe, tmp_path), participants=[participant], outputs=[output]
        )
        updates.append(output.read_bytes())
    return updates


def together(recipe, tmp_path, at_a_time, monkeypatch):
    """Return the updates of clients of one job, of which some train side by side."""
    monkeypatch.setattr(local_training, "at_a_time", lambda device: at_a_time)
    participants = list(group_participants(recipe, 0))
    outputs = [tmp_path / f"{at_a_time}_{participant}.safetensors" for participant in participants]
    stages.local_training(**inputs(recipe, tmp_path), participants=participants, outputs=outputs)
    return [output.read_bytes() for output in outputs]


@pytest.mark.parametrize(
    "changes",
    [
        {"client": BASE["client"] | AUGMENTED},
        {"local": "scaffold"},
        {"local": {"fedprox": {"mu": 0.1}}, "client": BASE["client"] | {"optimiser": "adam"}},
    ],
    ids=["momentum", "scaffold", "fedprox"],
)
def test_how_many_train_at_a_time_changes_no_byte(prepare, tmp_path, monkeypatch, changes):
    recipe = prepare(**changes)
    updates = alone(recipe, tmp_path)
    assert len(set(updates)) == CLIENTS
    steps = {
        load_tensors(tmp_path / f"alone_{participant}.safetensors")[1]["steps"]
        for participant in range(5)
    }
    assert len(steps) > 1, "some clients have fewer steps than others"
    for at_a_time in (1, 2, 3):
        assert together(recipe, tmp_path, at_a_time, monkeypatch) == updates


@pytest.mark.parametrize(
    "draw",
    [random.random, np.random.randn, lambda: torch.rand(1)],
    ids=["random", "numpy", "torch"],
)
def test_what_a_client_draws_depends_on_no_other(prepare, tmp_path, monkeypatch, draw):
    """On a GPU, where clients take turns; on a CPU one ends before the next begins."""
    monkeypatch.setattr(
        "fedstage.algorithm.local_trainers.participant.client_loss",
        lambda *_: lambda logits, labels: cross_entropy(logits * float(draw()), labels),
    )  # fmt: skip
    recipe = prepare()
    updates = alone(recipe, tmp_path)
    assert together(recipe, tmp_path, 1, monkeypatch) == updates
    monkeypatch.setattr(local_training, "SIDE_BY_SIDE", ("cpu",))
    updates = alone(recipe, tmp_path)
    for at_a_time in (1, 2, 3):
        assert together(recipe, tmp_path, at_a_time, monkeypatch) == updates


def test_a_client_that_diverges_leaves_the_others_alone(prepare, tmp_path, monkeypatch):
    """After one step at this rate weights are huge, after two they are no numbers."""
    client = {"epochs": 1, "batch_size": 30, "learning_rate": 1e38}
    recipe = prepare(client=client, on_divergence="drop", model="logistic_regression")
    updates = alone(recipe, tmp_path)
    notes = [
        load_tensors(tmp_path / f"alone_{participant}.safetensors")[1]
        for participant in range(CLIENTS)
    ]
    assert 0 < sum("diverged_at" in each for each in notes) < CLIENTS
    for at_a_time in (2, 3):
        assert together(recipe, tmp_path, at_a_time, monkeypatch) == updates


def test_clients_do_take_turns(prepare, tmp_path, monkeypatch):
    """Or the tests above would compare one client after the other with itself."""
    most = []
    turn = batches._turn

    def counted(enter, work, waiting):
        running.add(id(work))
        most.append(len(running))
        following = turn(enter, work, waiting)
        if not following or following[0][1] is not work:
            running.discard(id(work))
        return following

    running = set()
    monkeypatch.setattr(batches, "_turn", counted)
    recipe = prepare()
    together(recipe, tmp_path, 3, monkeypatch)
    outputs = (
        tmp_path / f"3_{participant}.safetensors" for participant in group_participants(recipe, 0)
    )
    steps = [load_tensors(output)[1]["steps"] for output in outputs]
    assert max(most) == 3
    assert len(most) == sum(steps) + CLIENTS  # a turn for each step, and one for the update


def test_the_last_models_are_judged_once_a_job_and_for_no_empty_participant(
    prepare, tmp_path, monkeypatch
):
    recipe = prepare(
        local={"fedgkd": {"teacher": "vote"}},
        data={"digits": {"test": 1500, "held_out": 100, "server_validation": 20}},
    )
    judged = []
    monkeypatch.setattr(
        local_training, "losses_of", lambda models, *_: judged.append(list(models)) or [0.5]
    )
    given = inputs(recipe, tmp_path)
    given |= {"history": [given["start"]], "server_validation": given["data"]}
    outputs = [tmp_path / f"{participant}.safetensors" for participant in range(3)]
    stages.local_training(**given, participants=[0, 1, 2], outputs=outputs)
    assert [len(models) for models in judged] == [1]
    monkeypatch.setattr(local_training, "client_of", lambda *_: (None, 0))
    gone = {"history": [tmp_path / "gone"], "server_validation": tmp_path / "gone"}
    stages.local_training(**given | gone, participants=[0], outputs=outputs[:1])
    assert len(judged) == 1
    assert load_tensors(outputs[0])[0] == {}
