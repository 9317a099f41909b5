"""The table of ensembles and communication: FedEED's Table 3 and FedSDD's Table 1."""

import csv
from pathlib import Path

import pandas as pd
import pytest
from tests.shared.recipes import FEDDF, FEDSDD, recipe

from fedstage.experiments.catalogue import load_catalogue
from fedstage.experiments.descriptions import describe_runs
from fedstage.experiments.runs_file import read_runs_file
from fedstage.results.tidy import write_tidy
from fedstage.stages.properties import ensemble_size, properties
from fedstage.stages.scores import MEASURES, joined
from fedstage.storage.files import save_json

WORKFLOW = Path(__file__).parents[3] / "workflow"


def made(tmp_path, name, sent=None):
    catalogue = load_catalogue({"targets": [f"{name}/smoke"]}, WORKFLOW, "")
    save_json(tmp_path / "runs.json", describe_runs(catalogue, name, "smoke"))
    scores = None
    if sent:
        scores = tmp_path / "scores.parquet"
        experiment = read_runs_file(tmp_path / "runs.json")
        about = {"evaluated": "global_model", "role": "test", "round": 1}
        measured = [pd.DataFrame([about | dict.fromkeys(MEASURES)]) for _ in sent]
        more = [[{**about, "measure": "bytes", "value": moved}] for moved in sent]
        write_tidy(scores, joined(experiment, measured, [{}] * len(sent), more))
    files = {"markdown": tmp_path / "t.md", "csv": tmp_path / "t.csv"}
    properties(runs=tmp_path / "runs.json", scores=scores, **files)
    lines = files["markdown"].read_text(encoding="utf-8").splitlines()
    table = [[*map(str.strip, line.strip("|").split("|"))] for line in lines if line[:1] == "|"]
    return table, list(csv.DictReader(files["csv"].open()))


def test_fedeeds_table_3_has_what_is_published_beside_what_was_sent(tmp_path):
    table, rows = made(tmp_path, "fedeed_table3", sent=[4.0, 4.0, 8.0, 4.0, 4.0, 4.0, 4.0])
    assert table[0] == [
        "Method", "Ensemble", "Students", "Secure aggregation", "Communication", "Published"
    ]  # fmt: skip
    assert table[2:] == [
        ["FedAvg", "–", "0", "yes", "1.00×", "1.00×"],
        ["FedProx", "–", "0", "yes", "1.00×", "1.50×"],
        ["SCAFFOLD", "–", "0", "yes", "2.00×", "1.50×"],
        ["FedDF", "C = 8", "1", "no: logits", "1.00×", "1.00×"],
        ["FedBE (Gaussian)", "C + S + 1 = 19", "1", "no: logits", "1.00×", "1.00×"],
        ["Fed-ensemble", "–", "0", "yes", "1.00×", "–"],
        ["FedEED", "K R = 4", "1", "yes", "1.00×", "1.00×"],
    ]
    assert rows[4] == {
        "method": "fedbe_gaussian", "ensemble": "C + S + 1 = 19", "students": "1",
        "reader": "logits", "published_communication": "1.0", "communication": "1.0",
    }  # fmt: skip


def test_fedsdds_table_1_trains_nothing_and_has_a_row_for_each_number_of_participants(tmp_path):
    table, _ = made(tmp_path, "fedsdd_table1")
    assert table[0] == ["Method", "Participants", "Ensemble", "Students", "Secure aggregation"]
    found = {(row[0], row[1]): row[2] for row in table[2:]}
    assert [found["FedDF", n] for n in ("8", "14", "20")] == ["C = 8", "C = 14", "C = 20"]
    assert {found["FedSDD, R = 4", n] for n in ("8", "14", "20")} == {"K R = 16"}


@pytest.mark.parametrize(
    ("changes", "formula"),
    [
        ({}, None),
        (FEDDF, "C = 4"),
        (FEDSDD | {"ensemble": "clients"}, "C = 4"),
        (FEDSDD | {"ensemble": {"bayesian": {"samples": 3}}}, "C + K (S + 1) = 12"),
        (FEDSDD | {"global": None, "ensemble": None}, None),
    ],
)
def test_the_formula_follows_from_the_members(changes, formula):
    assert ensemble_size(recipe(**changes)) == formula
