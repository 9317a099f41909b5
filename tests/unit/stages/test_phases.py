"""Sums over the tables that rounds and aggregators write, on tables made by hand."""

from pathlib import Path

import pytest
import torch
from tests.shared.settings import SERVER, one_shot

from fedstage.algorithm.one_shot.traffic import ROUNDS_SCHEMA
from fedstage.experiments.runs_file import Part
from fedstage.plan import training_folder
from fedstage.plan.traffic import traffic_files
from fedstage.plan.training import aggregated_model, participants_table
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.settings.recipes import Recipe
from fedstage.settings.runs import RunLength
from fedstage.stages.aggregation import PARTICIPANTS_SCHEMA
from fedstage.stages.phases import (
    Moved,
    Phase,
    bytes_until,
    held_bytes,
    model_bytes,
    phases_of,
    total,
)
from fedstage.storage.tables import save_table
from fedstage.storage.tensors import save_tensors

RECIPE = Recipe.model_validate(one_shot() | {"participants": 2})
ENSEMBLE = OneShotRecipe.model_validate(one_shot() | {"forget": [3]})
STUDENT = OneShotRecipe.model_validate(
    one_shot() | {"distillation": "l1", "server": SERVER, "forget": [3]}
)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write_rounds(recipe, moved):
    """Write tables of participants: of each round the bytes up and down of each participant."""
    for path, rows in zip(traffic_files(recipe, len(moved)), moved, strict=True):
        round_ = 1 + traffic_files(recipe, len(moved)).index(path)
        columns = {name: [0] * len(rows) for name in PARTICIPANTS_SCHEMA.names}
        columns |= {
            "round": [round_] * len(rows),
            "dropped": [False] * len(rows),
            "bytes_up": [up for up, _ in rows],
            "bytes_down": [down for _, down in rows],
        }
        save_table(path, columns, PARTICIPANTS_SCHEMA)


def write_phases(recipe, rows):
    names = ROUNDS_SCHEMA.names
    full = [(phase, round_, who, None, up, down) for phase, round_, who, up, down in rows]
    columns = dict(zip(names, map(list, zip(*full, strict=True)), strict=True))
    save_table(traffic_files(recipe, 1)[0], columns, ROUNDS_SCHEMA)


def federated(rounds):
    return Part(length=RunLength(rounds=rounds), federated=RECIPE)


MOVED = [[(10, 30), (20, 30)], [(10, 8), (10, 16)], [(4, 4), (4, 4)]]
PHASES = [
    ("initial_model", 0, 3, 0, 100),
    ("local_model", 0, 3, 100, 0),
    ("ensemble", 0, 3, 0, 200),
    ("round", 1, 3, 12, 12),
    ("round", 2, 1, 12, 12),
    ("step", 3, 0, 0, 0),
]


def test_rounds_are_sums_over_participants_per_client():
    write_rounds(RECIPE, MOVED)
    assert phases_of([federated(3)]) == [Phase("federated_round", 3, Moved(58 / 4, 92 / 4, 150))]
    assert bytes_until([federated(3)]) == {
        1: Moved(7.5, 15.0, 90),
        2: Moved(12.5, 21.0, 134),
        3: Moved(14.5, 23.0, 150),
    }


def test_a_generator_and_discriminators_travel_once_before_the_rounds():
    taught = {"ensemble": "odds", "global": "basic", "data": {"digits": {"held_out": 20}}}
    recipe = Recipe.model_validate(one_shot() | {"participants": 2, "server": SERVER} | taught)
    write_rounds(recipe, MOVED)
    save_tensors(Path(training_folder.public_generator(recipe)), {"a": torch.zeros(100)})
    save_tensors(Path(training_folder.client_discriminator(recipe, 0)), {"a": torch.zeros(30)})
    part = Part(length=RunLength(rounds=3), federated=recipe)
    assert phases_of([part]) == [
        Phase("generator", 0, Moved(0, 400, 1600)),
        Phase("discriminator", 0, Moved(120, 0, 480)),
        Phase("federated_round", 3, Moved(58 / 4, 92 / 4, 150)),
    ]
    assert bytes_until([part])[1] == Moved(127.5, 415.0, 2080 + 90)
    write_rounds(RECIPE, MOVED)
    assert bytes_until([part, federated(3)])[1] == Moved(142.0, 438.0, 2080 + 150 + 90)


def test_phases_of_an_aggregator_count_who_takes_part():
    write_phases(ENSEMBLE, PHASES)
    part = Part(length=RunLength(rounds=1), one_shot=ENSEMBLE)
    assert phases_of([part]) == [
        Phase("initial_model", 0, Moved(0, 100, 300)),
        Phase("local_model", 0, Moved(100, 0, 300)),
        Phase("ensemble", 0, Moved(0, 200, 600)),
        Phase("round", 2, Moved(16, 16, 96)),  # the second round by one of three
    ]
    assert bytes_until([part]) == {1: Moved(116, 316, 1296)}


def test_what_goes_on_from_something_adds_to_it():
    write_rounds(RECIPE, MOVED)
    write_phases(STUDENT, PHASES[:2])
    student = Part(length=RunLength(rounds=1), one_shot=STUDENT)
    after = phases_of([student, federated(3)])
    assert [phase.name for phase in after] == ["initial_model", "local_model", "federated_round"]
    assert total(after) == Moved(114.5, 123.0, 750)
    assert bytes_until([student, federated(3)])[1] == Moved(107.5, 115.0, 690)
    assert bytes_until([federated(3), student]) == {1: Moved(114.5, 123.0, 750)}


@pytest.mark.parametrize(("evaluate", "held"), [("clients", 3 * 20 + 1 * 28), ("each_client", 28)])
def test_of_groups_that_are_drawn_those_are_held_who_took_part(evaluate, held):
    """Absent participants have no model; and each client may predict with its own alone."""
    groups = {"participants": 4, "global_models": 3, "server_model": True}
    recipe = Recipe.model_validate(one_shot() | groups | {"client_groups": "drawn"})
    for group, (clients, size) in {1: (3, 5), 2: (1, 7)}.items():
        columns = {name: [0] * clients for name in PARTICIPANTS_SCHEMA.names}
        columns |= {"round": [1] * clients, "dropped": [False] * clients}
        save_table(participants_table(recipe, 1, group), columns, PARTICIPANTS_SCHEMA)
        model = {"w": torch.zeros(size)}
        save_tensors(aggregated_model(recipe, 1, group), model)
    part = Part(length=RunLength(rounds=1, evaluate=evaluate), federated=recipe)
    assert held_bytes(part) == held
    assert model_bytes(part) == 28
