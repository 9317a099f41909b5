import pandas as pd
import pytest
from measured import described, runs_file

from fedstage.errors import FedstageError
from fedstage.results.claims.measurements import (
    cells_of,
    unreached,
    values_of_runs,
    values_of_table,
)
from fedstage.results.runs_file import ExperimentRuns
from fedstage.settings.validation import validate

POINTS = [
    {"method": method, "seed": seed, "participants": 8}
    for method in ("fedavg", "feddf")
    for seed in (0, 1)
]


def experiment(published=None):
    numbers = [{"value": published[point["method"]]} if published else None for point in POINTS]
    pairs = zip(POINTS, numbers, strict=True)
    runs = runs_file(described(point, published=number) for point, number in pairs)
    return validate(ExperimentRuns, runs, "here")


def shown(cells):
    return [(cell.axes["method"], dict(cell.values), cell.published) for cell in cells]


def test_seeds_are_gathered_in_their_cell():
    cells = cells_of(experiment(), {0: 1.0, 1: 2.0, 2: 3.0, 3: 4.0}, published=True)
    assert shown(cells) == [("fedavg", {0: 1.0, 1: 2.0}, None), ("feddf", {0: 3.0, 1: 4.0}, None)]
    assert cells[0].axes == {"method": "fedavg", "participants": 8}


def test_what_is_not_measured_or_no_number_is_left_out():
    cells = cells_of(experiment(), {0: 1.0, 2: float("nan"), 3: float("inf")}, published=True)
    assert [dict(cell.values) for cell in cells] == [{0: 1.0}, {}]


def test_published_numbers_are_of_the_tables_metric_only():
    numbers = {"fedavg": 88.53, "feddf": 87.98}
    cells = cells_of(experiment(numbers), {}, published=True)
    assert [cell.published for cell in cells] == [88.53, 87.98]
    cells = cells_of(experiment(numbers), {}, published=False)
    assert [cell.published for cell in cells] == [None, None]


def frame():
    rows = [
        {"run": run, "round": t, "evaluated": "x", "top1_accuracy": 10.0 * run + t, "loss": t}
        for run in range(2)
        for t in (1, 2)
    ]
    return pd.DataFrame(rows)


def test_a_metric_is_that_of_the_last_round():
    assert values_of_runs(frame(), "top1_accuracy") == {0: 2.0, 1: 12.0}
    assert values_of_runs(frame(), "loss") == {0: 2.0, 1: 2.0}


@pytest.mark.parametrize("metric", ["seconds", "evaluated"])
def test_a_metric_that_is_not_measured_is_told(metric):
    told = f"metric = '{metric}': not measured; use one of round, top1_accuracy, loss$"
    with pytest.raises(FedstageError, match=told):
        values_of_runs(frame(), metric)


def timings(**changes):
    columns = {
        "method": ["feddf", "feddf", "fedavg"],
        "seed": [0, 1, 0],
        "participants": [8.0, 8.0, 8.0],
        "seconds": [223.6, 224.0, 123.6],
    }
    return pd.DataFrame(columns | changes)


def test_a_table_of_other_measurements_is_matched_by_axes_and_seed():
    assert values_of_table(timings(), experiment(), "seconds") == {2: 223.6, 3: 224.0, 0: 123.6}


def test_runs_below_their_goal_have_at_least_their_total():
    table = timings(params=[5.0, 6.0, 7.0], params_to_reach=[3.0, None, None])
    values = values_of_table(table, experiment(), "params_to_reach")
    limits = unreached(values, table, experiment(), "params_to_reach")
    assert limits == {3: 6.0, 0: 7.0}
    assert unreached(values, table, experiment(), "params") == {}
    cells = cells_of(experiment(), values | limits, published=False, open_ended=limits)
    assert [dict(cell.values) for cell in cells] == [{0: 7.0}, {0: 3.0, 1: 6.0}]
    assert [cell.open_ended for cell in cells] == [{0}, {1}]


def test_a_table_without_a_column_or_with_a_row_twice_is_told():
    with pytest.raises(FedstageError, match=r"^measurements: minutes: no such column"):
        values_of_table(timings(), experiment(), "minutes")
    with pytest.raises(FedstageError, match=r"^measurements: participants: no such column"):
        values_of_table(timings().drop(columns="participants"), experiment(), "seconds")
    told = "method = feddf, seed = 0, participants = 8: is listed twice; keep one"
    with pytest.raises(FedstageError, match=told):
        values_of_table(timings(seed=[0, 0, 0]), experiment(), "seconds")
