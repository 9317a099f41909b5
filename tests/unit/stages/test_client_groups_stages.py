"""Rounds of clients with groups of their own: absent participants, heads that travel, logits.

Four of six clients take part, whose groups are drawn. With this seed nobody of group 2 does in
round 1.
"""

import statistics
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.shared.settings import federated
from tests.shared.stages import call_with as call
from tests.shared.stages import make_all, make_data
from tests.shared.stages import recipe as write_recipe

from fedstage.algorithm.exchange.updates import part, read_updates
from fedstage.data.participation import draw_groups
from fedstage.models.heads import HEAD
from fedstage.plan import data_files
from fedstage.plan.data_files import public_id
from fedstage.plan.scores import evaluation
from fedstage.plan.segments import Segment
from fedstage.plan.training import (
    aggregated_model,
    aggregation,
    distillation,
    global_model,
    logits,
    participants_table,
    updates,
)
from fedstage.plan.training_folder import training_folder
from fedstage.protocol.digests import as_json, canonical
from fedstage.protocol.groups import client_groups, group_participants
from fedstage.settings.recipes import Recipe
from fedstage.stages.segment import segment
from fedstage.storage.tables import load_table
from fedstage.storage.tensors import load_tensors, save_tensors

CLIENTS, PARTICIPANTS = 6, 4
SMALL, LARGE = (
    {"cnn_small": {"width": width, "hidden": 6, "head": {"hidden": 6, "width": 5}}}
    for width in (2, 3)
)
BASE = federated(
    data={"digits": {"test": 100, "held_out": 40, "server_validation": 20}},
    clients=CLIENTS,
    partition={"dirichlet": {"alpha": 0.5, "min_samples": 5}},
    validation=0.2,
    participants=PARTICIPANTS,
    model=LARGE,
    architectures=[LARGE, SMALL, LARGE],
    global_models=3,
    server_model=True,
    client_groups="drawn",
    client={"steps": 3, "batch_size": 16, "learning_rate": 0.2},
    server={"steps": 3, "batch_size": 16, "learning_rate": 0.1},
    numerics={"device": "cpu"},
    seed=17,
)
FEDET = {
    "aggregation": {"weights": "uniform"},
    "head_sharing": True,
    "ensemble": {"clients": {"weights": "confidence", "average": "probabilities"}},
    "global": "designated",
    "distillation": "fedet",
}
DSFL = {
    "local": "digest",
    "ensemble": {"clients": {"average": "probabilities"}},
    "global": "designated",
    "distillation": "entropy_reduction",
    "server": BASE["server"] | {"samples_a_round": 25},
}


def a_recipe(**changes):
    return Recipe.model_validate(BASE | changes)


def logits_of(recipe, round_, group, images):
    """Return the logits of a group's participants."""
    owner = aggregation.job(recipe, round_, group).config
    return logits(owner, round_, group, "clients", images)


@pytest.fixture(scope="module")
def fedet(tmp_path_factory):
    """Return the folder and the recipe of two rounds of Fed-ET."""
    return made(tmp_path_factory.mktemp("fedet"), a_recipe(**FEDET))


@pytest.fixture(scope="module")
def dsfl(tmp_path_factory):
    return made(tmp_path_factory.mktemp("dsfl"), a_recipe(**DSFL))


def made(folder, recipe):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        make_all(
            *(global_model(recipe, 2, group) for group in range(3)),
            *(logits_of(recipe, t, group, public_id(recipe)) for t in (1, 2) for group in (1, 2)),
        )
    return folder, recipe


@pytest.fixture
def at_fedet(fedet, monkeypatch):
    monkeypatch.chdir(fedet[0])
    return fedet[1]


@pytest.fixture
def at_dsfl(dsfl, monkeypatch):
    monkeypatch.chdir(dsfl[0])
    return dsfl[1]


def tensors(path):
    return load_tensors(path)[0]


def notes(path):
    return load_tensors(path)[1]


def plan(recipe, round_):
    """Return the client of each participant of a round that is not empty."""
    rows = load_table(data_files.participation_table(recipe, 1)).to_pylist()
    return {
        row["participant"]: row["client"]
        for row in rows
        if row["round"] == round_ and row["client"] is not None
    }


def said_by(recipe, round_):
    """Return the updates of a round that are not empty, by participant."""
    found = {}
    for group in client_groups(recipe):
        paths = updates(aggregation.job(recipe, round_, group).config, round_, group)
        found |= {update.metadata["participant"]: update for update in read_updates(paths)}
    return found


# --- absent participants --------------------------------------------------------------------------


def test_participation_is_by_the_groups_that_were_drawn(at_fedet):
    group_of = draw_groups(CLIENTS, 2, BASE["seed"])
    for round_ in (1, 2):
        participants = plan(at_fedet, round_)
        assert len(participants) == PARTICIPANTS
        assert all(
            participant // PARTICIPANTS == group_of[client]
            for participant, client in participants.items()
        )
    # As the tests below need it: nobody of group 2 takes part in round 1, and somebody in round 2.
    assert max(plan(at_fedet, 1)) < PARTICIPANTS <= max(plan(at_fedet, 2))


def test_an_empty_participant_writes_an_update_without_tensors(at_fedet):
    recipe = at_fedet
    for round_ in (1, 2):
        there = plan(recipe, round_)
        for group in (1, 2):
            paths = updates(aggregation.job(recipe, round_, group).config, round_, group)
            for participant, path in zip(group_participants(recipe, group), paths, strict=True):
                place = {"round": round_, "group": group, "participant": participant}
                if participant in there:
                    assert notes(path)["client"] == there[participant]
                    assert tensors(path)
                else:
                    assert (tensors(path), notes(path)) == ({}, place | {"client": None})


def test_a_group_of_nobody_keeps_its_model(at_fedet):
    recipe = aggregation.job(at_fedet, 1, 2).config
    path = aggregated_model(recipe, 1, 2)
    start = tensors(global_model(recipe, 0, 2))
    assert all(torch.equal(value, start[name]) for name, value in tensors(path).items())
    assert notes(path) == {"round": 1, "group": 2, "samples": 0}
    moved = tensors(aggregated_model(recipe, 1, 1))
    begun = tensors(global_model(recipe, 0, 1))
    assert not any(torch.equal(value, begun[name]) for name, value in moved.items())


def test_a_client_travels_with_a_small_model_and_nobody_with_the_servers(at_fedet):
    """Bytes are those of the group's model: the server's is sent to nobody."""
    for round_ in (1, 2):
        for group in (1, 2):
            one = aggregation.job(at_fedet, round_, group).config
            model = tensors(global_model(at_fedet, 0, group))
            size = sum(value.numel() * 4 for value in model.values())
            rows = load_table(participants_table(one, round_, group)).to_pylist()
            assert {(row["bytes_up"], row["bytes_down"]) for row in rows} <= {(size, size)}
    sizes = [sum(v.numel() for v in tensors(global_model(at_fedet, 0, k)).values())
             for k in (1, 2)]  # fmt: skip
    assert sizes[0] < sizes[1]


# --- heads ----------------------------------------------------------------------------------------


def split(weights):
    """Return the tensors of the head, and the others."""
    head = {name for name in weights if name.startswith(f"{HEAD}.")}
    assert len(head) == 4
    return {name: weights[name] for name in head}, {
        name: value for name, value in weights.items() if name not in head
    }


def same(one, other):
    return one.keys() == other.keys() and all(
        torch.equal(value, other[name]) for name, value in one.items()
    )


@pytest.mark.parametrize("round_", [1, 2])
def test_the_servers_model_takes_the_plain_mean_of_participants_heads(at_fedet, round_):
    up = aggregated_model(at_fedet, round_, 0)
    head, body = split(tensors(up))
    updates = said_by(at_fedet, round_).values()
    assert len(updates) == PARTICIPANTS
    assert len({update.metadata["samples"] for update in updates}) > 1  # which do not count
    for name, value in head.items():
        mean = torch.stack([update.weights[name].double() for update in updates]).mean(0)
        assert torch.allclose(value.double(), mean, atol=1e-7)
    assert same(body, split(tensors(global_model(at_fedet, round_ - 1, 0)))[1])
    assert {key: notes(up)[key] for key in ("round", "group")} == {"round": round_, "group": 0}


def test_a_model_keeps_its_head_where_nobody_sends_one(at_fedet, tmp_path):
    empty = updates(aggregation.job(at_fedet, 1, 2).config, 1, 2)
    model, output = global_model(at_fedet, 0, 0), tmp_path / "with_head.safetensors"
    dropped = tmp_path / "dropped.safetensors"
    save_tensors(
        dropped, {}, {"round": 1, "group": 2, "participant": 5, "client": 3, "diverged_at": 1}
    )
    files = {
        "recipe": f"{training_folder(at_fedet)}/recipe.yaml",
        "model": model,
        "output": str(output),
    }
    call("head_sharing", files | {"heads": [*empty, str(dropped)]}, round=1, group=0)
    assert same(tensors(output), tensors(model))
    assert notes(output) == notes(model) | {"round": 1, "group": 0}


def test_a_segment_makes_the_same_bytes(at_fedet, monkeypatch, tmp_path):
    recipe = at_fedet
    paths = [global_model(recipe, 2, group) for group in (0, 1, 2)]
    paths += [participants_table(aggregation.job(recipe, 2, 1).config, 2, 1)]
    expected = [Path(path).read_bytes() for path in paths]
    monkeypatch.chdir(tmp_path)
    make_data(recipe)
    base = aggregation.job(recipe, 1, 1).config
    for group in (1, 2):
        segment(Segment(base, (group,), 1, 1))
        make_all(logits_of(recipe, 1, group, "held_out"))
    segment(Segment(recipe, (0, 1, 2), 1, 2))
    assert [Path(path).read_bytes() for path in paths] == expected


# --- logits that are exchanged --------------------------------------------------------------------


def test_clients_send_and_hear_the_logits_of_a_rounds_public_samples(at_dsfl):
    """25 samples of 10 classes in 32 bits; in the first round there is nothing to hear."""
    size = 25 * 10 * 4
    for round_, down in ((1, 0), (2, size)):
        rows = []
        for group in (1, 2):
            one = aggregation.job(at_dsfl, round_, group).config
            rows += load_table(participants_table(one, round_, group)).to_pylist()
        assert [(row["bytes_up"], row["bytes_down"]) for row in rows] == [(size, down)] * 4


def test_every_participants_model_is_kept_until_it_takes_part_again(at_dsfl):
    first, second = said_by(at_dsfl, 1), said_by(at_dsfl, 2)
    state = tensors(aggregation(aggregation.job(at_dsfl, 2, 1).config, 2, 1, output="new_state"))
    last = {update.metadata["client"]: update for update in [*first.values(), *second.values()]}
    in_group_1 = {
        client: update for client, update in last.items() if update.metadata["group"] == 1
    }
    assert len(in_group_1) == 4
    for client, update in in_group_1.items():
        assert same(part(state, f"client/{client}/"), update.weights)
    assert not part(state, "client/5/")  # who is in the other group


def test_the_servers_model_goes_on_from_its_own(at_dsfl):
    assert distillation.job(at_dsfl, 2, 0).inputs["start"] == global_model(at_dsfl, 1, 0)
    models = [tensors(global_model(at_dsfl, round_, 0)) for round_ in (0, 1, 2)]
    assert not same(models[0], models[1])
    assert not same(models[1], models[2])
    assert notes(global_model(at_dsfl, 2, 0))["round"] == 2


# --- scores ---------------------------------------------------------------------------------------


def evaluated(recipe, what, tmp_path, /, **changes):
    """Return the rows of an evaluation of both rounds."""
    make_all(*(logits_of(recipe, t, group, "test") for t in (1, 2) for group in (1, 2)))
    files = evaluation.job(recipe, what, "test", 2, 1).inputs | {
        "output": str(tmp_path / "m.parquet")
    }
    call("evaluation", files | changes, evaluated=what, role="test", rounds=2, every=1)
    return load_table(files["output"]).to_pylist()


def test_models_are_scored_on_their_clients_own_test_samples(at_dsfl, tmp_path):
    path = data_files.data_file(at_dsfl.data, "test")
    arrays = tensors(path)
    owners = torch.arange(len(arrays["labels"])) % CLIENTS
    data, settings = tmp_path / "test.safetensors", tmp_path / "natural.yaml"
    save_tensors(data, arrays | {"clients": owners})
    natural = canonical(at_dsfl) | {"partition": "natural"}
    write_recipe(settings=as_json(natural), output=settings)
    rows = evaluated(at_dsfl, "each_client", tmp_path, data=str(data), recipe=str(settings))
    right = arrays["labels"].numpy()
    for row in rows:
        own = []
        for group in (1, 2):
            one = aggregation.job(at_dsfl, row["round"], group).config
            clients = [client for participant, client in sorted(plan(at_dsfl, row["round"]).items())
                       if participant in group_participants(at_dsfl, group)]  # fmt: skip
            said = tensors(logits(one, row["round"], group, "clients", "test"))["logits"]
            for client, outputs in zip(clients, said, strict=True):
                mine = (owners == client).numpy()
                own.append(100 * np.mean(outputs.argmax(1).numpy()[mine] == right[mine]))
        assert row["own_test_mean"] == pytest.approx(np.mean(own))
        assert row["own_test_std"] == pytest.approx(statistics.stdev(own))
        assert row["own_mean"] is None


def test_the_servers_model_is_scored_with_the_participants_of_all_groups(at_fedet, tmp_path):
    rows = evaluated(at_fedet, "global_model", tmp_path)
    sizes = [sum(4 * v.numel() for v in tensors(global_model(at_fedet, 0, k)).values())
             for k in (1, 2)]  # fmt: skip
    assert [row["participants"] for row in rows] == [PARTICIPANTS, PARTICIPANTS]
    # The most that a participant moves: in round 1 all are in group 1.
    assert [(row["bytes_up"], row["bytes_down"]) for row in rows] == [
        (sizes[0], sizes[0]), (sizes[1], sizes[1]),
    ]  # fmt: skip
    assert all(row["client_std"] is None for row in rows)
