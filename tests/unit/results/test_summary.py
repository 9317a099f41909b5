"""Means and deviations over seeds."""

import numpy as np
import pytest
from tests.unit.results.conftest import ACCURACIES, tidy_of

from fedstage.errors import FedstageError
from fedstage.results.statistics import welch_interval
from fedstage.results.summary import summarise
from fedstage.settings.scores import Number


def test_rows_follow_each_axis_in_turn(tidy):
    found = summarise(tidy)
    assert found["method"].tolist() == [m for m in ("local_only", "fedavg", "fedsdd") for _ in "12"]
    assert found["partition.alpha"].tolist() == [0.1, 1.0] * 3
    assert found.loc[2, "by_seed"] == dict(enumerate(ACCURACIES["fedavg", 0.1]))


def test_epsilon_is_of_the_worst_seed_and_dropped_updates_add_up():
    measures = {
        "epsilon": lambda method, value: value if method == "fedavg" else None,
        "dropped": lambda method, value: 1.0 if method == "fedavg" else None,
    }
    found = summarise(tidy_of(ACCURACIES, measures=measures)).set_index("method")
    assert found.loc["fedavg", "epsilon"].tolist() == [61.5, 83.0]
    assert found.loc["fedavg", "dropped"].tolist() == [3.0, 3.0]
    assert found.loc["fedsdd", ["epsilon", "dropped"]].isna().all(axis=None)


def test_published_numbers_stand_beside_their_cells(tidy):
    cells = list(tidy.header.cells)
    number = Number(value=65.0, std=2.0, seeds=3)
    cells[1] = cells[1].model_copy(update={"published": {"top1_accuracy": number}})
    header = tidy.header.model_copy(update={"cells": cells, "published": "Paper, Table 1"})
    found = summarise(tidy._replace(header=header))
    row = found.iloc[2]
    values = ACCURACIES["fedavg", 0.1]
    assert row["difference"] == pytest.approx(np.mean(values) - 65)
    expected = welch_interval((np.mean(values), np.std(values, ddof=1), 3), (65.0, 2.0, 3))
    assert (row["difference_low"], row["difference_high"]) == pytest.approx(expected)
    assert found["published"].notna().sum() == 1


def test_seeds_that_end_in_different_rounds_have_no_mean(tidy):
    last = (tidy.frame["seed"] == 0) & (tidy.frame["round"] == 2)
    with pytest.raises(FedstageError, match="different rounds"):
        summarise(tidy._replace(frame=tidy.frame[~last]))
