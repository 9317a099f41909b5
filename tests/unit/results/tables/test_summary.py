import math
import statistics

import pandas as pd
import pytest
from scipy.stats import ttest_ind_from_stats

from fedstage.errors import FedstageError
from fedstage.results.tables.summary import metric_of, summarise, table_schema


def runs(*points):
    """Return a frame as `read_runs` does: a point is (settings, last accuracy, changes)."""
    rows = []
    for run, (settings, accuracy, changes) in enumerate(points):
        for round_, value in ((1, accuracy / 2), (2, accuracy)):
            row = {
                "run": run,
                "metrics_file": f"{run}.parquet",
                "round": round_,
                "top1_accuracy": value,
                "auc": value + 7,
                "client_std": None,
                "own_test_mean": value + 2,
                "own_test_std": None,
                "own_mean": value + 1,
                "own_std": 3.0,
                "bytes_up": 100,
                "bytes_down": 200,
            }
            rows.append(settings | row | changes)
    frame = pd.DataFrame(rows)
    return frame.astype({"method": "string", "client_std": "float64"})


def point(method, seed, accuracy, alpha=0.1, **changes):
    return {"method": method, "seed": seed, "alpha": alpha}, accuracy, changes


def with_alpha(*points):
    return runs(*points).astype({"alpha": "Float64"})


def test_mean_and_deviation_over_seeds_of_the_last_round():
    accuracies = [61.5, 64.25, 59.0]
    table = summarise(runs(*(point("fedavg", s, a) for s, a in enumerate(accuracies))), ["method"])
    assert len(table) == 1
    row = table.iloc[0]
    assert row["top1_accuracy"] == pytest.approx(statistics.mean(accuracies), abs=1e-12)
    assert row["std"] == pytest.approx(statistics.stdev(accuracies), abs=1e-12)
    assert row["seeds"] == 3
    assert row["own_mean"] == pytest.approx(statistics.mean(accuracies) + 1, abs=1e-12)
    assert row["rounds"] == 2


def test_column_axes_make_a_row_each_and_seeds_stay_within_it():
    points = [
        point(method, seed, accuracy + seed, alpha)
        for method, accuracy in (("scaffold", 50.0), ("fedavg", 60.0))
        for alpha in (1.0, 0.1)
        for seed in (0, 1)
    ]
    table = summarise(with_alpha(*points), ["method", "alpha"])
    assert list(table["method"]) == ["scaffold", "scaffold", "fedavg", "fedavg"]
    assert list(table["alpha"]) == [1.0, 0.1, 1.0, 0.1]
    assert list(table["top1_accuracy"]) == [50.5, 50.5, 60.5, 60.5]


def test_methods_may_end_in_different_rounds_and_say_so():
    frame = runs(point("fedavg", 0, 60.0), point("local", 0, 30.0))
    frame = frame[(frame["method"] == "fedavg") | (frame["round"] == 1)]
    assert list(summarise(frame, ["method"])["rounds"]) == [2, 1]


def test_seeds_of_one_row_that_end_in_different_rounds_are_refused():
    frame = runs(point("fedavg", 0, 60.0), point("fedavg", 1, 60.0))
    frame = frame[(frame["seed"] == 0) | (frame["round"] == 1)]
    message = r"method = fedavg: the seeds end in round 2 \(seed 0.*round 1 \(seed 1"
    with pytest.raises(FedstageError, match=message):
        summarise(frame, ["method"])


def test_a_table_is_of_the_metric_that_is_asked_for():
    frame = runs(
        ({"method": "fedavg", "seed": 0}, 60.0, {}), ({"method": "fedavg", "seed": 1}, 64.0, {})
    )
    table = summarise(frame, ["method"], "auc")
    assert table["auc"].tolist() == [69.0]
    assert table["std"].tolist() == pytest.approx([math.sqrt(8)])
    assert "top1_accuracy" not in table
    assert metric_of(table) == "auc"
    assert metric_of(summarise(frame, ["method"])) == "top1_accuracy"


# --- beside published numbers ---------------------------------------------------------------------


def compared():
    numbers = {"published": 88.53, "published_std": 0.31, "published_seeds": 3}
    nothing = {"published": None, "published_std": None, "published_seeds": None}
    frame = runs(
        point("fedavg", 0, 60.0, **numbers),
        point("fedavg", 1, 61.0, **numbers),
        point("own", 0, 62.0, **nothing),
    )
    types = {"published": "float64", "published_std": "float64", "published_seeds": "Int64"}
    return frame.astype(types)


def test_a_row_has_its_published_number_and_the_difference_of_means():
    table = summarise(compared(), ["method"])
    first, second = table.iloc[0], table.iloc[1]
    names = ["published", "published_std", "published_seeds"]
    assert list(first[names]) == [88.53, 0.31, 3]
    assert first["difference"] == pytest.approx(60.5 - 88.53, abs=1e-12)
    assert second[[*names, "difference"]].isna().all()
    # Welch: deviations 0.7071 of 2 seeds and 0.31 of 3; at its ends p = 0.05.
    low, high = first["difference_low"], first["difference_high"]
    assert (low + high) / 2 == pytest.approx(60.5 - 88.53)
    end = ttest_ind_from_stats((high - low) / 2, 0.5**0.5, 2, 0.0, 0.31, 3, equal_var=False)
    assert end.pvalue == pytest.approx(0.05)
    assert second[["difference_low", "difference_high"]].isna().all()
    assert table["difference"].dtype == "float64"
    assert table["published_seeds"].dtype == "Int64"


def test_maxima_are_averaged_beside_the_last_round_and_change_nothing_else():
    points = [
        point("fedavg", 0, 60.0, as_released=66.0),
        point("fedavg", 1, 62.0, as_released=70.0),
    ]
    plain = summarise(runs(*points).drop(columns="as_released"), ["method"])
    row = summarise(runs(*points), ["method"]).iloc[0]
    assert (row["as_released"], row["as_released_std"]) == (68.0, pytest.approx(8**0.5))
    assert row["top1_accuracy"] == plain.iloc[0]["top1_accuracy"] == 61.0
    assert "as_released" not in plain
    assert table_schema(runs(*points), ["method"]).names[-2:] == ["as_released", "as_released_std"]


def test_a_guarantee_is_the_worst_of_the_seeds():
    points = [
        point("private", seed, 30.0, epsilon=epsilon, delta=1e-5)
        for seed, epsilon in enumerate((2.0, 3.0))
    ]
    frame = runs(*points, point("plain", 0, 31.0, epsilon=math.nan, delta=math.nan))
    table = summarise(frame, ["method"])
    assert list(table["epsilon"])[:1] == [3.0]
    assert math.isnan(table["epsilon"].iloc[1])
    assert list(table["delta"])[:1] == [1e-5]
    assert "epsilon" not in summarise(runs(point("plain", 0, 31.0)), ["method"])
