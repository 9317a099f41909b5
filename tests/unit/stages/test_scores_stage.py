"""Scores of clients and classes, from files of runs to their table."""

import pandas as pd
from measured import described, runs_file
from tests.shared.settings import federated

from fedstage.algorithm.measures.metrics import CLIENTS_SCHEMA
from fedstage.experiments.runs_file import read_runs_file
from fedstage.results.client_tables import client_tables
from fedstage.stages.scores import MEASURES, further_rows, joined
from fedstage.stages.table import names_of
from fedstage.storage.files import save_json
from fedstage.storage.tables import save_rows


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
    experiment = read_runs_file(tmp_path / "runs.json")
    about = {"evaluated": "global_model", "role": "test", "round": 1, "top1_accuracy": 1.0}
    measured = [pd.DataFrame([dict.fromkeys(MEASURES) | about]) for _ in runs]
    more = [further_rows(run, experiment) for run in experiment.runs]
    scores = joined(experiment, measured, [{}, {}], more)
    own, *_, classes = tables = client_tables(scores, names_of(experiment.runs))
    assert len(tables) == 4
    columns = ["seed", "of", "client_name", "class_name", "samples", "accuracy"]
    rows = own.exact[columns].astype(object).where(own.exact[columns].notna(), None)
    assert rows.to_numpy().tolist()[:5] == [
        [0, "test", "Basel", None, 0, None],
        [0, "test", "Bern", None, 7, 20.0],
        [0, "validation", "Bern", None, 4, 50.0],
        [0, "own_mix", "Basel", None, 9, 40.0],
        [0, "class", None, "well", 5, 30.0],
    ]
    assert classes.shown.iloc[0].tolist() == ["well", "5", "30.00 ± 0.00"]
