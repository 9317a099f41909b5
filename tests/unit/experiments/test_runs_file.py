import json

import pytest
from tests.shared.settings import config, federated

from fedstage.errors import FedstageError
from fedstage.experiments.catalogue import load_catalogue
from fedstage.experiments.descriptions import describe_runs
from fedstage.experiments.runs_file import read_runs_file
from fedstage.plan.training_folder import training_id
from fedstage.settings.recipes import Recipe
from fedstage.storage.files import save_json

BASE = federated(
    clients=10,
    partition={"dirichlet": {"alpha": 0.1}},
    participants=4,
    rounds=8,
    client={
        "epochs": 1,
        "batch_size": 16,
        "learning_rate": 0.05,
        "schedule": {"step": {"milestones": [0.5, 0.75]}},
    },
    server={"steps": 20, "batch_size": 16, "learning_rate": 0.01},
)
LIBRARY = {
    "fedavg": {},
    "fedsdd": {
        "global_models": 2,
        "ensemble": {"aggregated": {"checkpoints": 2}},
        "global": "designated",
    },
}


EXPERIMENT = {
    "title": "A",
    "base": BASE,
    "grid": {
        "method": ["fedavg", "fedsdd"],
        "participants": [4, 6],
        "evaluate": ["global_model", {"aggregated": {"checkpoints": 3}}],
        "seed": [0, 1],
    },
    "table": {"rows": ["method", "evaluate"], "columns": ["participants"]},
    "simulation": {"logits": 2.0, "one_client_at_a_time": True},
    "scales": {"default": None},
}


@pytest.fixture
def written(tmp_path):
    (tmp_path / "methods.yaml").write_text(json.dumps(LIBRARY))
    catalogue = load_catalogue(config(a=EXPERIMENT), tmp_path)
    path = tmp_path / "default.runs.json"
    save_json(path, describe_runs(catalogue, "a", "default"))
    return catalogue.experiments["a"], catalogue.runs["a", "default"], path


def test_a_runs_file_is_read_as_it_was_written(written):
    experiment, runs, path = written
    found = read_runs_file(path)
    assert (found.experiment, found.scale, found.title) == ("a", "default", "A")
    assert found.simulation == experiment.simulation
    assert [run.recipe for run in found.runs] == [run.recipe for run in runs]
    assert [run.length for run in found.runs] == [run.length for run in runs]
    assert [training_id(run.recipe) for run in found.runs] == [
        training_id(run.recipe) for run in runs
    ]
    assert all(isinstance(run.recipe, Recipe) for run in found.runs)


def test_a_damaged_runs_file_is_named(written):
    *_, path = written
    damaged = path.read_text().replace('"clients": 10', '"clients": 0')
    path.write_text(damaged)
    place = r"default\.runs\.json: runs\.0\.candidates\.0\.parts\.0\.federated\.clients = 0"
    with pytest.raises(FedstageError, match=place):
        read_runs_file(path)
