"""Accuracy by client and class: what is measured, and the tables of it."""

import pytest
import torch
from fedstage.stages.clients import clients
from measured import described, runs_file
from tests.shared.settings import federated

from fedstage.algorithm.measures.clients import of_classes, of_mixes, of_own
from fedstage.algorithm.measures.metrics import CLIENTS_SCHEMA
from fedstage.algorithm.measures.scores import own_accuracies, score
from fedstage.storage.files import save_json
from fedstage.storage.tables import save_rows

LOGITS = torch.tensor([[2.0, 1.0], [2.0, 1.0], [0.0, 1.0], [3.0, 1.0]])
LABELS = torch.tensor([0, 0, 1, 1])


COUNTS = {0: {0: 3, 1: 1}, 2: {1: 5}, 5: {}}


def test_each_class_has_the_share_of_its_samples_that_are_right():
    found = [(row["label"], row["samples"], row["accuracy"]) for row in of_classes(LOGITS, LABELS)]
    assert found == [(0, 2, 100.0), (1, 2, 50.0)]


def test_each_client_has_the_share_of_its_own_samples_that_are_right():
    right = torch.tensor([True, False, True, True, False, True])
    owners = torch.tensor([2, 1, 2, 1, -1, 3])  # of no client, and of the server's share
    rows = of_own("test", right, owners, 3)
    assert {row["of"] for row in rows} == {"test"}
    found = [(row["client"], row["samples"], row["accuracy"]) for row in rows]
    assert found == [(0, 0, None), (1, 2, 50.0), (2, 2, 100.0)]


def test_mixes_are_those_whose_mean_metrics_have():
    found = list(of_mixes(score(LOGITS, LABELS), COUNTS))
    assert [(row["client"], row["samples"]) for row in found] == [(0, 4), (2, 5), (5, 0)]
    assert [row["accuracy"] for row in found] == [pytest.approx(87.5), 50.0, None]
    own = own_accuracies([score(LOGITS, LABELS)], COUNTS)
    assert own == [row["accuracy"] for row in found if row["accuracy"] is not None]


def run_of(tmp_path, seed, accuracy):
    rows = [
        {"of": "test", "client": 0, "label": None, "samples": 0, "accuracy": None},
        {"of": "test", "client": 1, "label": None, "samples": 7 + seed, "accuracy": 20.0},
        {"of": "validation", "client": 1, "label": None, "samples": 4, "accuracy": accuracy},
        {"of": "own_mix", "client": 0, "label": None, "samples": 9, "accuracy": 40.0},
        {"of": "class", "client": None, "label": 1, "samples": 5, "accuracy": 30.0},
    ]
    save_rows(tmp_path / f"{seed}.parquet", rows, CLIENTS_SCHEMA)
    data = {"name": "table", "folder": "f", "label": "l", "client_column": "c"}
    recipe = federated() | {
        "data": data, "clients": 2, "participants": 2, "partition": "natural",
        "model": "logistic_regression", "seed": seed,
    }  # fmt: skip
    parts = [{"length": {"rounds": 1}, "federated": recipe}]
    files = {"info": str(tmp_path / "info.json"), "clients": [str(tmp_path / f"{seed}.parquet")]}
    return described({"method": "a", "seed": seed}, candidates=[{"parts": parts}], **files)


def test_tables_have_the_names_of_the_data(tmp_path):
    info = {"class_names": ["ill", "well"], "client_names": ["Basel", "Bern"]}
    save_json(tmp_path / "info.json", info)
    runs = [run_of(tmp_path, seed, accuracy) for seed, accuracy in ((0, 50.0), (1, 70.0))]
    save_json(tmp_path / "runs.json", runs_file(runs))
    clients(runs=tmp_path / "runs.json", csv=tmp_path / "t.csv", markdown=tmp_path / "t.md")
    head, *rows = (tmp_path / "t.csv").read_text().splitlines()
    assert head == "method,seed,of,client,client_name,label,class_name,samples,accuracy"
    assert rows[:5] == [
        "a,0,test,0,Basel,,,0,",
        "a,0,test,1,Bern,,,7,20.0",
        "a,0,validation,1,Bern,,,4,50.0",
        "a,0,own_mix,0,Basel,,,9,40.0",
        "a,0,class,,,1,well,5,30.0",
    ]
    text = (tmp_path / "t.md").read_text()
    assert "60.00 ± 14.14" in text
    lines = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("|") and "---" not in line
    ]
    assert lines == [
        ["Client", "own test samples", "Method = a: accuracy on own test samples",
         "own validation samples", "Method = a: accuracy on own validation samples",
         "own training samples", "Method = a: estimate by own mix of classes"],
        ["Basel", "0", "–", "–", "–", "9", "40.00 ± 0.00"],
        ["Bern", "7–8", "20.00 ± 0.00", "4", "60.00 ± 14.14", "–", "–"],
        ["Class", "test samples", "Method = a: accuracy"],
        ["well", "5", "30.00 ± 0.00"],
    ]  # fmt: skip
