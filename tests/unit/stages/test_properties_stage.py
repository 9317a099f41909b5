import csv
import shutil
from pathlib import Path

import pytest

from fedstage.execution.cli import main
from fedstage.experiments.catalogue import load_catalogue
from fedstage.experiments.descriptions import describe_runs
from fedstage.results.method_properties import Cost
from fedstage.stages.properties import as_function, properties
from fedstage.storage.files import save_json

METHODS = Path(__file__).parents[3] / "workflow/methods.yaml"


@pytest.fixture
def runs(tmp_path):
    raw = {
        "title": "The title",
        "base": {
            "data": {"digits": {"held_out": 100}},
            "clients": 20,
            "partition": "iid",
            "model": "cnn_small",
            "rounds": 3,
            "client": {"epochs": 1, "batch_size": 16, "learning_rate": 0.05},
            "server": {"steps": 20, "batch_size": 16, "learning_rate": 0.01},
        },
        "grid": {"method": ["fedavg", "feddf", "fedsdd"], "participants": [8, 14], "seed": [0, 1]},
        "table": {"columns": ["participants"]},
        "scales": {"default": None},
    }
    shutil.copy(METHODS, tmp_path)
    catalogue = load_catalogue({"targets": ["e"], "experiments": {"e": raw}}, tmp_path)
    path = tmp_path / "runs.json"
    save_json(path, describe_runs(catalogue, "e", "default"))
    return path


def make(runs, name="t"):
    paths = [runs.parent / f"{name}.{suffix}" for suffix in ("md", "csv")]
    properties(runs=runs, markdown=paths[0], csv=paths[1])
    return paths


def test_a_row_a_place_of_the_table_whatever_the_seeds(runs):
    markdown, _ = make(runs)
    text = markdown.read_text(encoding="utf-8")
    assert text.startswith("# The title\n\nExperiment `e` at scale `default`: computed")
    assert "\n| Method | Participants | Ensemble |" in text
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("| Fed")
    ]
    assert rows == [
        ["FedAvg", "8", "–", "–", "–", "yes", "–", "1"],
        ["FedAvg", "14", "–", "–", "–", "yes", "–", "1"],
        ["FedDF", "8", "C = 8", "C = 8", "1", "no: logits", "0 %", "1"],
        ["FedDF", "14", "C = 14", "C = 14", "1", "no: logits", "0 %", "1"],
        ["FedSDD", "8", "4", "4", "1", "yes", "75 %", "1"],
        ["FedSDD", "14", "4", "4", "1", "yes", "71.4286 %", "1"],
    ]


def test_the_csv_has_the_numbers(runs):
    _, path = make(runs)
    rows = list(csv.DictReader(path.open()))
    assert len(rows) == 6
    assert rows[3] == {
        "method": "feddf",
        "participants": "14",
        "participants_a_round": "14",
        "ensemble_models": "14",
        "ensemble_growth": "1.0",
        "passes": "14",
        "passes_growth": "1.0",
        "students": "1",
        "secure_aggregation": "False",
        "reads_single_clients": "logits",
        "overlap": "0.0",
        "inference_models": "1",
    }
    assert rows[0]["overlap"] == ""


def test_the_same_runs_give_the_same_bytes(runs):
    one, other = make(runs, "one"), make(runs, "other")
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in other]


def test_a_damaged_runs_file_ends_the_command_with_one_line(runs, capsys):
    runs.write_text("{")
    arguments = ["--runs", runs, "--markdown", "x.md", "--csv", "x.csv"]
    assert main(["properties", *map(str, arguments)]) == 1
    assert "runs.json: truncated or altered" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("cost", "text"),
    [
        (Cost(4, 0.0, 4.0), "4"),
        (Cost(8, 1.0, 0.0), "C = 8"),
        (Cost(19, 1.0, 11.0), "C + 11 = 19"),
        (Cost(6, 1.0, -2.0), "C − 2 = 6"),
        (Cost(20, 2.5, 0.0), "2.5 C = 20"),
    ],
)
def test_costs_are_functions_of_the_participants(cost, text):
    assert as_function(cost) == text
