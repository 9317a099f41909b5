"""Which files were made from others, by records."""

import json

import pytest
import yaml

from fedstage.storage.derived import made_from

TRAIN, CLIENTS = "results/data/d/train.safetensors", "results/partitions/p/clients.parquet"
INFO = "results/data/d/info.json"


def job(stage, inputs, *outputs, **options):
    by_option = {
        option: dict.fromkeys([files] if isinstance(files, str) else files)
        for option, files in inputs.items()
    }
    made = {"output": dict.fromkeys(outputs)}
    return {"stage": stage, "inputs": by_option, "outputs": made, "options": options}


def derived(files, *jobs, forgotten=(2,)):
    return made_from(files, dict(enumerate(jobs)), forgotten)


def test_what_is_made_from_a_file_is_found_through_all_jobs():
    jobs = [
        job("choice", {"metrics": "b"}, "c"),
        job("evaluation", {"models": ["x", "a"]}, "b"),
        job("evaluation", {"models": ["x"]}, "d"),
    ]
    assert derived({"a"}, *jobs) == {"b", "c"}


def test_a_clients_model_is_made_from_its_own_samples():
    read = {"data": TRAIN, "clients": CLIENTS, "info": INFO, "start": "w"}
    jobs = [job("local_model", read, f"model_{client}", client=client) for client in range(4)]
    assert derived({TRAIN, CLIENTS, INFO}, *jobs) == {"model_2"}
    assert derived({"w"}, *jobs) == {f"model_{client}" for client in range(4)}


def test_scores_are_made_from_label_counts_and_rounds_from_who_has_what():
    jobs = [
        job("local_evaluation", {"histogram": "h", "models": "m"}, "metrics"),
        job("local_training", {"clients": CLIENTS, "data": TRAIN}, "update"),
        job("participation", {"histogram": []}, "plan"),
    ]
    assert derived({TRAIN, INFO}, *jobs) == set()
    assert derived({"h"}, *jobs) == {"metrics"}
    assert derived({CLIENTS}, *jobs) == {"update"}


RECIPE = {
    "data": {"name": "digits", "held_out": 10},
    "clients": 4,
    "partition": {"name": "dirichlet", "alpha": 1.0},
    "aggregator_fraction": 0.2,
    "model": {"name": "logistic_regression"},
    "client": {"epochs": 1, "batch_size": 8, "learning_rate": 0.1},
    "aggregator": {"name": "voting"},
    "seed": 0,
}


@pytest.mark.parametrize(("forget", "found"), [([2], set()), ([0], {"made"}), ([], {"made"})])
def test_an_aggregator_that_has_forgotten_is_made_from_other_clients(tmp_path, forget, found):
    path = tmp_path / "recipe.yaml"
    path.write_text(yaml.safe_dump({"settings": RECIPE | {"forget": forget}}))
    read = {
        "recipe": str(path),
        "models": ["client_0"],
        "logits": ["logits/fp32/client_0-aggregator.safetensors"],
        "clients": CLIENTS,
        "histogram": "h",
        "data": TRAIN,
    }
    given = {CLIENTS, "h", TRAIN, "logits/fp32/client_0-aggregator.safetensors"}
    assert derived(given, job("aggregator", read, "made")) == found
    assert derived({"client_0"}, job("aggregator", read, "made")) == {"made"}


def test_results_are_made_from_what_their_description_names(tmp_path):
    described = tmp_path / "default.runs.json"
    described.write_text(json.dumps({"runs": [{"metrics": "results/metrics.parquet"}]}))
    table = job("tables", {"runs": str(described)}, "table.csv")
    assert derived({"results/metrics.parquet"}, table) == {"table.csv"}
    assert derived({"results/other.parquet"}, table) == set()
