"""The metrics of a target as a frame."""

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


def test_an_unfinished_run_is_an_error(folder):
    (folder / "results/training/fedavg0.10-test.parquet").unlink()
    message = (
        r"1 of \d+ runs are not finished \(.*fedavg0\.10-test\.parquet has not been made yet\)"
    )
    for read in (results.load, results.compare):
        with pytest.raises(FedstageError, match=message) as error:
            read("tiny/mini", folder=folder)
        assert str(error.value).endswith("snakemake --cores all tiny/mini finishes them")
