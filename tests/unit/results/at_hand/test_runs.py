"""Finding a run by method, seed and further axes."""

import pytest

from fedstage import results
from fedstage.errors import FedstageError
from fedstage.results.at_hand.runs import find_run


def found(folder, method, seed, at):
    return find_run("tiny/mini", method, seed, at, folder)[1]


def test_the_run_of_these_values_is_found(folder):
    run = found(folder, "fedavg", 1, {"partition.alpha": 0.1})
    assert run.metrics == str(folder / "results/training/fedavg0.11-test.parquet")
    assert found(folder, "fedavg", 1, {"partition.alpha": "0.1"}) == run


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fedavg", 1, None), "2 runs; name one by further axes, such as partition.alpha = 0.1"),
        (("feddf", 1, None), "method = 'feddf': no cell of tiny/mini; use one of fedsdd, fedavg"),
        (("fedavg", 7, None), "seed = 7: no cell of tiny/mini; use one of 0, 1, 2"),
        (("fedavg", 1, {"alpha": 1}), "alpha: no axis of tiny/mini; use one of method, partition"),
    ],
)
def test_what_names_no_run_or_several_is_refused(folder, arguments, message):
    with pytest.raises(FedstageError) as error:
        found(folder, *arguments)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


# --- the metrics of a target as a frame -----------------------------------------------------------


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
