"""Segments in one process; tests/workflow compares them with single jobs, byte by byte."""

import pytest
import torch
from tests.shared.settings import federated
from tests.shared.stages import make_data, run_command

from fedstage.plan import segment_rules, segments
from fedstage.plan.graph import recipe_file
from fedstage.plan.runs import Run
from fedstage.plan.training import (
    aggregation,
    global_model,
    participants_table,
)
from fedstage.plan.training_folder import owners, training_folder
from fedstage.settings.equivalences import simplest
from fedstage.settings.recipes import Recipe
from fedstage.settings.runs import RunLength
from fedstage.storage.planned import write_recipe
from fedstage.storage.tables import load_table
from fedstage.storage.tensors import load_tensors

BASE = federated(
    data={"digits": {"test": 1500, "held_out": 100, "server_validation": 20}},
    clients=3,
    model="logistic_regression",
    client={"epochs": 1, "batch_size": 32, "learning_rate": 0.05},
    server={"steps": 3, "batch_size": 32, "learning_rate": 0.05},
)


FEDBE = {
    "ensemble": {"bayesian": {"samples": 2, "variant": "as_released"}},
    "global": "basic",
    "server": BASE["server"] | {"swa": {"every": 1}},
}
ORIGINAL = {
    "global_models": 2,
    "ensemble": "clients",
    "global": {"designated": {"warm_up": 1}},
    "server": BASE["server"] | {"drop_worst": "as_released", "early_stopping": {}},
}


ASKED = BASE["server"] | {"augmentation": "flip", "teacher_images": "augmented", "buffer": {}}
#: Teachers that are asked themselves, of one round and of several, and students of another start.
ASKING = {
    "asked clients": {
        "ensemble": "clients", "server": ASKED, "global": {"basic": {"starts_from": "previous"}},
    },
    "asked averages": {
        "global_models": 2, "ensemble": {"aggregated": {"checkpoints": 4}}, "server": ASKED,
        "global": {"designated": {"warm_up": 1}},
    },
    "previous": {
        "ensemble": "clients", "global": {"basic": {"starts_from": "previous", "warm_up": 2}},
    },
    "generated images": {
        "ensemble": "clients", "global": {"basic": {"warm_up": 1}}, "public": "generated",
        "generator": {"fedftg": {"width": 2, "student_steps": 1}},
    },
    "factors": {
        "model": "resnet8", "ensemble": {"aggregated": {"checkpoints": 3}}, "global": "basic",
        "server": BASE["server"] | {"factor_transfer": {"epochs": 1}},
    },
}  # fmt: skip


@pytest.fixture
def prepare(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def make(**changes):
        recipe = Recipe.model_validate(BASE | changes)
        make_data(recipe)
        return recipe

    return make


def run_all(recipe, rounds, length, keep="all", read=None, skip=lambda part: False, every=1):
    """Run all segments of a recipe in an order that inputs allow; return what they declare."""
    run = Run({}, recipe, RunLength(rounds=rounds, evaluate_every=every))
    trained, logits = segments.plan([run], length)
    if read is None:
        read = segment_rules.files_read(
            [run], [segment_rules.inputs_of(part.jobs())[1] for part in (*trained, *logits)]
        )
    some = trained if keep == "needed" else []
    kept = {part: segment_rules.needed(part, part.jobs(), read) for part in some}
    for part in trained:
        write_recipe(recipe_file(training_folder(part.recipe)), simplest(part.recipe))
    waiting = [part for part in (*trained, *logits) if not skip(part)]
    while waiting:
        part = next(part for part in waiting if ready(part))
        waiting.remove(part)
        words = dict(word.split("=") for word in part.words.split())
        if part in kept:
            words["kept"] = ",".join(kept[part])
        run_command(part.stage, training_folder(part.recipe), **words)
    parts = (*trained, *logits)
    return [
        path for part in parts for path in segment_rules.outputs_of(part.jobs(), kept.get(part))
    ]


def ready(part):
    from pathlib import Path

    return all(Path(path).exists() for path in segment_rules.inputs_of(part.jobs())[1])


@pytest.mark.parametrize(
    "changes", [{"local": "scaffold"}, FEDBE, ORIGINAL, *ASKING.values()], ids=str
)
def test_the_length_of_segments_does_not_change_a_byte(prepare, tmp_path, changes):
    recipe = prepare(**changes)
    run_all(recipe, 3, 3)
    long = (tmp_path / global_model(recipe, 3, 0)).read_bytes()
    for path in (tmp_path / "results/training").rglob("*.safetensors"):
        path.unlink()
    run_all(recipe, 3, 1)
    assert (tmp_path / global_model(recipe, 3, 0)).read_bytes() == long


@pytest.mark.parametrize("checkpoints", [1, 2, 3])
def test_what_no_job_reads_is_dropped_without_changing_a_byte(prepare, tmp_path, checkpoints):
    ensemble = {"aggregated": {"checkpoints": checkpoints}}
    recipe = prepare(**{"global": {"basic": {"warm_up": 1}}, "ensemble": ensemble})

    def files():
        found = (tmp_path / "results/training").rglob("round_*/**/*.*")
        return {str(path.relative_to(tmp_path)): path.read_bytes() for path in found}

    run_all(recipe, 5, 2)
    everything = files()
    for path in everything:
        (tmp_path / path).unlink()
    outputs = run_all(recipe, 5, 2, "needed")
    assert files() == {path: everything[path] for path in outputs}
    assert len(outputs) < len(everything)


#: Clients that exchange logits, of a small round, with the server's student.
EXCHANGING = {
    "clients": 3, "global_models": 3, "server_model": True, "client_groups": "drawn",
    "ensemble": {"clients": {"average": "probabilities"}}, "global": "designated",
    "server": BASE["server"] | {"samples_a_round": 40},
}  # fmt: skip


@pytest.mark.parametrize(("duration", "same"), [(1, True), (3, False)])
def test_labels_that_serve_one_round_are_those_of_dsfl(exchanging, duration, same):
    ends, sent = [], []
    for cache in (None, {"duration": duration}):
        recipe = exchanging(cache=cache)
        run_all(recipe, 4, 4)
        ends.append(load_tensors(global_model(recipe, 4, 0))[0])
        tables = [load_table(participants_table(recipe, 4, group)) for group in (1, 2)]
        rows = [row for table in tables for row in table.to_pylist()]
        sent.append([(row["client"], row["bytes_up"]) for row in rows])
    assert all(torch.equal(value, ends[1][name]) for name, value in ends[0].items()) == same
    assert all(up == 40 * 10 * 4 for _, up in sent[0])
    assert (sent[0] == sent[1]) == same
    assert sum(up for _, up in sent[1]) <= sum(up for _, up in sent[0])


@pytest.fixture
def exchanging(prepare):
    """Return a function that prepares a recipe of such clients, with their groups drawn."""

    def make(cache):
        return prepare(**EXCHANGING, local={"digest": {"cache": cache}})

    return make


#: Clients that learn from the last global models, which others may have made.
REMEMBERING = {
    "three": {"local": {"fedgkd": {"models": 3, "gamma": 2.0}}},
    "voting": {"local": {"fedgkd": {"models": 2, "gamma": 2.0, "teacher": "vote"}}},
    "students": {
        "local": {"fedgkd": {"models": 4, "gamma": 2.0}}, "ensemble": "clients",
        "global": {"basic": {"warm_up": 1}},
    },
    "late": {
        "local": {"fedgkd": {"models": 2, "gamma": 2.0}}, "ensemble": "clients", "global": "basic",
        "staleness": {"cyclic": {"delays": [0, 1]}},
    },
}  # fmt: skip


def check_that_needed_files_stay(recipe, tmp_path, length):
    """Run with all files, and again with those that are needed: the same end, and no others."""
    run_all(recipe, 6, 1)
    place = tmp_path / global_model(recipe, 6, 0)
    expected = place.read_bytes()
    for path in (tmp_path / "results/training").rglob("round_*/**/*.*"):
        path.unlink()
    outputs = run_all(recipe, 6, length, "needed", every=6)
    assert place.read_bytes() == expected
    found = (tmp_path / "results/training").rglob("round_*/**/*.*")
    assert {str(path.relative_to(tmp_path)) for path in found} == set(outputs)


@pytest.mark.slow
@pytest.mark.parametrize("name", REMEMBERING)
@pytest.mark.parametrize("length", [2, 25])
def test_models_stay_for_as_long_as_clients_learn_from_them(prepare, tmp_path, name, length):
    recipe = prepare(**REMEMBERING[name])
    check_that_needed_files_stay(recipe, tmp_path, length)


def test_state_that_distilled_recipes_go_on_from_outlives_each_of_them(prepare, tmp_path):
    """Lines that differ in their teacher share the first round, with its state."""
    taught = {"local": "scaffold", "ensemble": "clients", "global": "basic"}
    first = prepare(**taught)
    run_all(first, 3, 3)
    state = tmp_path / aggregation(owners(first)[1], 1, 0, output="new_state")
    before = state.read_bytes()
    server = BASE["server"] | {"temperature": 2.0}
    second = Recipe.model_validate(BASE | taught | {"server": server})
    run_all(second, 3, 3, skip=lambda part: part.recipe == owners(second)[1])
    assert (tmp_path / global_model(second, 3, 0)).exists()
    assert state.read_bytes() == before
