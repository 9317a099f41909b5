"""The metrics of a target as a frame."""

import subprocess
import sys

import pytest

from fedstage import results
from fedstage.errors import FedstageError


def test_each_run_round_and_measure_is_a_row(folder):
    frame = results.load("tiny/mini", folder)
    names = ["method", "label", "partition.alpha", "seed", "round", "evaluated", "role"]
    assert list(frame) == [*names, "measure", "value"]
    tested = frame.query("role == 'test' and measure == 'top1_accuracy'")
    assert len(tested) == 6 * 3 * 2
    last = tested[tested["round"] == 2].set_index(["method", "partition.alpha", "seed"])["value"]
    assert last["fedavg", 0.1, 2] == 61.5
    assert set(tested["label"]) == {"FedAvg", "FedSDD", "fedprox"}
    assert set(frame["measure"]) > {"auc", "loss", "bytes_up", "participants"}


def test_scores_on_validation_samples_are_there_if_they_have_been_made(folder):
    frame = results.load("tiny/mini", folder).query("role == 'validation'")
    accuracies = frame.query("measure == 'top1_accuracy'")
    assert accuracies[["method", "seed", "round", "value"]].values.tolist() == [
        ["fedavg", 0, 1, 9.0],
        ["fedavg", 0, 2, 55.0],
    ]


def test_an_unknown_target_names_those_that_there_are(folder):
    with pytest.raises(FedstageError, match=r"^tiny: no results .*; there is tiny/mini$"):
        results.load("tiny", folder)
    with pytest.raises(FedstageError, match=r"there are no results$"):
        results.load("tiny", folder / "elsewhere")


def test_an_unfinished_run_is_an_error(folder):
    (folder / "results/training/fedavg0.10-test.parquet").unlink()
    message = (
        r"1 of \d+ runs are not finished \(.*fedavg0\.10-test\.parquet has not been made yet\)"
    )
    for read in (results.load, results.compare):
        with pytest.raises(FedstageError, match=message) as error:
            read("tiny/mini", folder=folder)
        assert str(error.value).endswith("snakemake --cores all tiny/mini finishes them")


def test_public_functions_are_imported_when_they_are_used():
    assert sorted(results.__all__) == sorted(results._MODULES)
    for name in results.__all__:
        assert getattr(results, name).__doc__
    with pytest.raises(AttributeError, match="no attribute 'lod'"):
        results.lod  # noqa: B018
    code = (
        "import sys, fedstage.results; sys.exit('torch' in sys.modules or 'pandas' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
