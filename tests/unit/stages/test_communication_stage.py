"""The stage `communication` on files of runs made by hand: C_acc(x) against a plain loop."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from tests.shared.settings import one_shot
from tests.shared.stages import call

from fedstage.algorithm.measures.metrics import METRICS_SCHEMA
from fedstage.plan.traffic import client_models, held_files, traffic_files
from fedstage.protocol.digests import canonical
from fedstage.settings.recipes import Recipe
from fedstage.settings.runs import RunLength
from fedstage.stages.aggregation import PARTICIPANTS_SCHEMA
from fedstage.storage.files import save_json
from fedstage.storage.tables import save_table
from fedstage.storage.tensors import save_tensors

ROUNDS, EVALUATED = 6, (2, 4, 6)
BASE = one_shot(clients=7)


def recipe(local, seed):
    own = {"participants": 4, "global_models": 2, "local": local, "seed": seed}
    return Recipe.model_validate(BASE | own)


def write_rounds(run, seed):
    """Write tables of participants, each with bytes of its own; return the rows of all."""
    generator = np.random.default_rng(seed)
    rows = []
    for path in traffic_files(run, ROUNDS):
        round_ = 1 + len(rows) // 4
        up, down = (4 * generator.integers(1, 10**6, 2) for _ in range(2))
        columns = {name: [0, 0] for name in PARTICIPANTS_SCHEMA.names}
        columns |= {"dropped": [False, False], "round": [round_] * 2}
        save_table(path, columns | {"bytes_up": up, "bytes_down": down}, PARTICIPANTS_SCHEMA)
        rows += [(round_, *way) for way in zip(up.tolist(), down.tolist(), strict=True)]
    return rows


def write_metrics(path, scores, role):
    columns = {field.name: [1] * len(scores) for field in METRICS_SCHEMA}
    columns |= {"evaluated": ["global_model"] * len(scores), "role": [role] * len(scores)}
    columns |= {"round": EVALUATED[: len(scores)], "top1_accuracy": scores}
    save_table(path, columns, METRICS_SCHEMA)


def write_models(run, length):
    for path in {*client_models(run, length), *held_files(run, length)}:
        save_tensors(path, {"w": torch.zeros(5)})


SCORES = {
    ("fedavg", 0): [40.0, 72.0, 60.0],
    ("fedavg", 1): [40.0, 60.0, 70.0],
    ("scaffold", 0): [71.0, 72.0, 73.0],
    ("scaffold", 1): [60.0, 69.9, 69.0],
}


@pytest.fixture(params=["test", "validation"])
def made(request, tmp_path, monkeypatch):
    """The stage's outputs, and the rows of all participants of each run."""
    monkeypatch.chdir(tmp_path)
    length = RunLength(rounds=ROUNDS, evaluate_every=2, role=request.param)
    described, travelled = [], {}
    for (method, seed), scores in SCORES.items():
        run = recipe(method, seed)
        travelled[method, seed] = write_rounds(run, len(described))
        metrics = f"metrics/{method}_{seed}.parquet"
        write_metrics(metrics, scores, request.param)
        write_models(run, length)
        part = {"length": canonical(length), "federated": canonical(run)}
        described.append(
            {
                "settings": {"method": method, "seed": seed},
                "metrics": metrics,
                "partition": "none",
                "candidates": [{"parts": [part]}],
                "published_params": 72e9 if method == "fedavg" else None,
            }
        )
    runs = {"experiment": "e", "scale": "s", "title": "T", "rows": ["method"], "runs": described}
    runs |= {"reach": 70, "params": "Fed-ET, Table 3", "labels": {"scaffold": "SCAFFOLD"}}
    return make(runs), travelled


def make(runs):
    path = Path("runs.json")
    save_json(path, runs)
    names = ("csv", "parquet", "by_run", "markdown", "html", "figure")
    outputs = {name: path.with_name(f"out_{name}.png") for name in names}
    call("communication", {"runs": path} | outputs | {"figure": [outputs["figure"]]})
    return outputs


def test_parameters_are_those_of_all_participants_until_the_first_round_that_is_good_enough(made):
    outputs, travelled = made
    frame = pd.read_parquet(outputs["by_run"]).set_index(["method", "seed"])
    for place, scores in SCORES.items():
        sent, reached = 0, None
        for round_ in range(1, ROUNDS + 1):
            for at, up, down in travelled[place]:
                if at == round_:
                    sent += up // 4 + down // 4
            score = scores[EVALUATED.index(round_)] if round_ in EVALUATED else 0
            if reached is None and score >= 70:
                reached = sent
        assert frame.loc[place, "params"] == sent
        found = frame.loc[place, "params_to_reach"]
        assert np.isnan(found) if reached is None else found == reached
    assert np.isnan(frame.loc[("scaffold", 1), "params_to_reach"]), "is not reached"


def test_all_tables_say_what_is_not_reached(made):
    outputs, _ = made
    table = pd.read_csv(outputs["csv"]).set_index(["method", "seed", "phase"])
    never = table.loc[("scaffold", 1, "total_to_reach")]
    assert (never["target"], np.isnan(never["params"]), np.isnan(never["bytes"])) == (
        70,
        True,
        True,
    )
    assert table.loc[("fedavg", 0, "total_to_reach"), "published_params"] == 72e9
    text = outputs["markdown"].read_text()
    (fedavg,) = [row for row in text.splitlines() if row.startswith("| fedavg") and "10⁹" in row]
    assert fedavg.split("|")[3].strip() == "72.0 × 10⁹"
    scaffold = next(row for row in text.splitlines() if row.startswith("| SCAFFOLD"))
    assert "(1 of 2 seeds)" in scaffold
    assert "To the accuracy" in text
    assert "round whose Top-1 accuracy is at least 70 %" in text
    assert "Fed-ET, Table 3" in text
    assert outputs["html"].read_text().count("<table>") == 2
