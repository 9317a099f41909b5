"""Means over rounds and seeds, and pairs of methods, of tables written by hand."""

import pytest
import torch
from measured import CANDIDATES, described, rows_of

from fedstage.algorithm.measures.forgetting import RETENTION_SCHEMA
from fedstage.experiments.runs_file import ExperimentRun
from fedstage.results.retention.table import (
    COLUMNS,
    RunRetention,
    overlap_columns,
    overlap_rows,
    read_retention,
    shown_overlaps,
    shown_retention,
    table_rows,
)
from fedstage.results.tables.columns import schema_of
from fedstage.storage.files import save_json
from fedstage.storage.tables import save_rows
from fedstage.storage.tensors import save_tensors

NAMES = RETENTION_SCHEMA.names
#: The second round follows the first, nobody takes part in the third.
ROUNDS = [
    (1, 10, 50.0, None, None, None, None, None, 0.25, 30.0),
    (2, 10, 90.0, 40.0, 50.0, 3, 2, 4, 0.75, 50.0),
    (3, 0, None, None, None, None, None, None, None, 50.0),
    (4, 20, 80.0, 60.0, 20.0, 1, 4, 8, 0.5, 20.0),
]


def rounds(*numbers):
    return [dict(zip(NAMES, ROUNDS[number - 1], strict=True)) for number in numbers]


def run(method="a", seed=0, learnt="1", numbers=(1, 2, 3, 4), **more):
    settings = {"method": method, "seed": seed, **more}
    bits = torch.tensor([digit == "1" for digit in learnt])
    return RunRetention(settings, rounds(*numbers), bits)


def test_means_are_over_the_rounds_that_have_a_forget_score():
    assert run().numbers == {
        "final_accuracy": 20.0,
        "forget_score": 35.0,
        "current": 85.0,
        "previous": 50.0,
        "lost": 2.0,
        "gained": 3.0,
        "retained": 6.0,
        "distance": 0.625,
        "fluctuation": pytest.approx((20 + 0 + 30) / 3),
    }


def test_cells_are_means_over_seeds():
    runs = [run(seed=0), run(seed=1, numbers=(1, 2)), run("b")]
    first, second = table_rows(runs, ["method"])
    assert (first["method"], first["seeds"], first["forget_score"]) == ("a", 2, 42.5)
    assert first["forget_score_std"] == pytest.approx(15 / 2**0.5)
    assert (second["method"], second["seeds"], second["lost_std"]) == ("b", 1, None)
    schema = schema_of([first, second], COLUMNS)
    assert str(schema.field("seeds").type) == "int64"
    assert str(schema.field("method").type) == "string"


def test_what_no_seed_has_is_shown_as_nothing():
    (row,) = rows_of(shown_retention([run(numbers=(1,))], ["method"]))
    assert row["Forget score"] == "–"
    assert (row["Final accuracy (%)"], row["Distance (%)"], row["Seeds"]) == ("30.00", "–", "1")


# --- overlap of new knowledge ---------------------------------------------------------------------


def test_methods_are_compared_with_the_same_seed_and_cell():
    runs = [
        run("a", 0, "1100", alpha=1), run("b", 0, "0110", alpha=1), run("c", 0, "0000", alpha=1),
        run("a", 1, "1111", alpha=1), run("b", 1, "1111", alpha=1), run("c", 1, "0000", alpha=1),
        run("a", 0, "1000", alpha=2), run("b", 1, "1000", alpha=2),
    ]  # fmt: skip
    rows = overlap_rows(runs, ["method", "alpha"])
    assert list(rows[0]) == overlap_columns(["method", "alpha"])
    found = {tuple(row.values())[:3]: row for row in rows}
    assert found.keys() == {(1, "a", "b"), (1, "a", "c"), (1, "b", "c")}
    both = found[1, "a", "b"]
    assert (both["overlap"], both["seeds"]) == (pytest.approx((100 / 3 + 100) / 2), 2)
    assert found[1, "a", "c"]["overlap"] == 0


def test_overlaps_are_shown_with_labels():
    rows = overlap_rows([run("a", 0, "110"), run("b", 0, "011")], ["method"])
    assert rows_of(shown_overlaps(rows, ["method"], {"a": "Method A"})) == [
        {"Method": "Method A", "Other method": "b", "Overlap (%)": "33.33", "Seeds": "1"}
    ]


# --- files ----------------------------------------------------------------------------------------


def run_of(**changes):
    return ExperimentRun.model_validate(described({"method": "a", "seed": 0}, **changes))


def write(name, numbers):
    save_rows(f"{name}.parquet", rounds(*numbers), RETENTION_SCHEMA)
    bits = {"start": torch.tensor([True, False]), "end": torch.tensor([True, True])}
    save_tensors(f"{name}.safetensors", bits)


def test_of_a_choice_the_chosen_candidate_is_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("one", (1,))
    write("two", (1, 2))
    save_json("chosen.json", {"chosen": {"rate": 2}})
    run = run_of(
        retention=["one.parquet", "two.parquet"],
        chosen="chosen.json",
        candidates=[CANDIDATES[0] | {"values": {"rate": rate}} for rate in (1, 2)],
    )
    assert len(read_retention(run).rounds) == 2
