import json

import pytest

from fedstage.errors import FedstageError
from fedstage.experiments.resolution import resolve
from fedstage.plan.sharing import line_id
from fedstage.results.definitions import define, read_definition
from fedstage.settings.experiments import Experiment
from fedstage.settings.lines import Line
from fedstage.settings.validation import validate

BASE = {
    "data": "digits",
    "clients": 10,
    "partition": {"dirichlet": {"alpha": 0.1}},
    "participants": 4,
    "model": "cnn_small",
    "rounds": 8,
    "client": {
        "epochs": 1,
        "batch_size": 16,
        "learning_rate": 0.05,
        "schedule": {"step": {"milestones": [0.5, 0.75]}},
    },
    "server": {"steps": 20, "batch_size": 16, "learning_rate": 0.01},
}
LIBRARY = {
    "fedavg": {},
    "fedsdd": {
        "global_models": 2,
        "ensemble": {"aggregated": {"checkpoints": 2}},
        "global": "designated",
    },
}


def an_experiment(**changes):
    raw = {
        "title": "A",
        "base": BASE,
        "grid": {
            "method": ["fedavg", "fedsdd"],
            "participants": [4, 6],
            "evaluate": ["global_model", {"aggregated": {"checkpoints": 3}}],
            "seed": [0, 1],
        },
        "table": {"rows": ["method", "evaluate"], "columns": ["participants"]},
        "simulation": {"logits": {"mean": 2.0, "variation": 0.5}, "rounds_ahead": 0},
        "scales": {"default": None},
        **changes,
    }
    return validate(Experiment, raw, "here")


@pytest.fixture
def written(tmp_path):
    experiment = an_experiment()
    runs = resolve("a", experiment, "default", LIBRARY)
    path = tmp_path / "default.json"
    path.write_text(json.dumps(define("a", "default", experiment, runs)))
    return experiment, runs, path


def test_a_definition_is_read_as_it_was_written(written):
    experiment, runs, path = written
    found = read_definition(path)
    assert (found.experiment, found.scale, found.title) == ("a", "default", "A")
    assert found.axes == ["method", "evaluate", "participants"]
    assert found.simulation == experiment.simulation
    assert [run.line for run in found.runs] == [run.line for run in runs]
    assert [run.length for run in found.runs] == [run.length for run in runs]
    assert [line_id(run.line) for run in found.runs] == [line_id(run.line) for run in runs]
    assert all(isinstance(run.line, Line) for run in found.runs)


def test_runs_of_a_place_differ_in_their_seed(written):
    *_, path = written
    places = read_definition(path).places()
    assert len(places) == 8
    assert list(places)[:2] == [
        ("fedavg", "global_model", 4),
        ("fedavg", "aggregated checkpoints 3", 4),
    ]
    for runs in places.values():
        assert [run.line.seed for run in runs] == [0, 1]


def test_a_damaged_definition_is_named(written):
    *_, path = written
    path.write_text(path.read_text().replace('"clients": 10', '"clients": 0'))
    with pytest.raises(FedstageError, match=r"default\.json: runs\.0\.line\.clients = 0"):
        read_definition(path)
