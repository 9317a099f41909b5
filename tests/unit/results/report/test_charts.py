import json
import re

import pandas as pd
import pytest
import vl_convert

from fedstage.results.figures.looks import looks_of
from fedstage.results.figures.names import NUMBERS, Names
from fedstage.results.figures.partition import draw_partition
from fedstage.results.intervals import confidence_interval
from fedstage.results.report.charts import curves_spec, last_spec
from fedstage.results.report.partition_chart import partition_spec

ROUNDS = 3


def runs(methods=("FedAvg", "FedDF"), seeds=(0, 1), alphas=(0.1,), once=()):
    rows = [
        {
            "run": (method, seed, alpha), "Method": method, "seed": seed, "α": alpha,
            "role": "test", "round": at, "top1_accuracy": 10.0 * at + seed + alpha,
        }
        for method in methods
        for alpha in alphas
        for seed in seeds
        for at in ([ROUNDS] if method in once else range(1, ROUNDS + 1))
    ]  # fmt: skip
    return pd.DataFrame(rows)


def curves(frame):
    return curves_spec(frame, ["Method", "α"], "top1_accuracy", ["Method"])


def last(frame):
    return last_spec(frame, ["Method", "α"], "top1_accuracy", ["Method"])


def values(spec, **wanted):
    rows = spec["data"]["values"]
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def drawn(spec):
    """The chart as SVG: a specification that Vega-Lite cannot read raises an error."""
    json.dumps(spec, allow_nan=False)
    return vl_convert.vegalite_to_svg(spec)


def test_lines_are_means_over_seeds_and_every_seed_is_there():
    spec = curves(runs())
    (mean,) = values(spec, line="FedDF", round=2, seed=None)
    assert (mean["value"], mean["seeds"]) == (20.6, 2)
    assert mean["std"] == 0.71
    assert [row["value"] for row in values(spec, line="FedDF", round=2)[1:]] == [20.1, 21.1]
    text = drawn(spec)
    assert "FedAvg" in text
    assert "Top-1 accuracy (%)" in text


def test_a_point_says_on_hover_what_it_is():
    (points,) = [one for one in curves(runs())["layer"] if "filled" in one["mark"]]
    tooltip = points["encoding"]["tooltip"]
    assert [one["field"] for one in tooltip] == ["line", "facet", "value", "round", "std", "seeds"]


@pytest.mark.parametrize("alphas", [(0.1, 1.0), (0.1, 0.3, 1.0, 10.0)], ids=len)
def test_facets_of_two_axes_have_one_across_and_one_down(alphas):
    parts = [runs(alphas=alphas).assign(rate=rate) for rate in (0.01, 0.03, 0.1)]
    frame = pd.concat(parts, ignore_index=True)
    frame = frame.assign(run=list(zip(frame["run"], frame["rate"], strict=True)))
    axes = ["rate", "Method", "α"]
    for chart in (curves_spec, last_spec):
        spec = chart(frame, axes, "top1_accuracy", ["rate", "Method"])
        assert spec["columns"] == len(alphas)
        assert spec["columns"] * spec["spec"]["width"] < 1000
        assert spec["facet"]["header"]["labelLimit"] <= spec["spec"]["width"]
        drawn(spec)


def test_a_single_seed_has_no_deviation_and_no_thin_lines():
    spec = curves(runs(seeds=(0,)))
    assert {row["std"] for row in values(spec)} == {None}
    assert all(row["seed"] is None for row in values(spec))
    drawn(spec)


def test_runs_that_are_evaluated_once_are_named_levels():
    frame = runs(once=("FedDF",))
    (level,) = [row for row in values(curves(frame)) if row["line"] == "FedDF"]
    assert (level["once"], level["value"]) == (True, 30.6)
    assert drawn(curves(frame)).count(">FedDF<") == 2  # in the legend, and at its level
    assert {row["line"] for row in values(last(frame))} == {"FedAvg", "FedDF"}
    assert curves(runs(once=("FedAvg", "FedDF"))) is None


def test_the_last_round_has_a_dot_a_seed_and_a_bar_at_the_mean():
    spec = last(runs())
    assert {row["round"] for row in values(spec)} == {ROUNDS}
    assert [row["value"] for row in values(spec, line="FedAvg")] == [30.6, 30.1, 31.1]
    drawn(spec)


def test_a_facet_for_each_value_of_another_axis():
    spec = curves(runs(alphas=(0.1, 1.0)))
    assert spec["facet"]["sort"] == ["α = 0.1", "α = 1"]
    assert "α = 1" in drawn(spec)
    assert "facet" not in curves(runs())


@pytest.mark.parametrize(("rounds", "most"), [(8, 12), (500, 12)])
def test_rounds_have_whole_numbers_as_ticks(rounds, most):
    frame = pd.concat([runs(seeds=(0,)).assign(round=at) for at in range(1, rounds + 1)])
    ticks = curves(frame)["layer"][0]["encoding"]["x"]["axis"]["values"]
    assert (ticks[0], ticks[-1]) == (1, rounds)
    assert 2 <= len(ticks) <= most
    assert all(type(tick) is int for tick in ticks)


def histogram(clients=2):
    rows = [(client, kind, 1 + client + 5 * kind) for client in range(clients) for kind in (0, 1)]
    return pd.DataFrame(rows, columns=["client", "label", "samples"])


def test_a_bubble_of_the_partition_has_client_class_and_samples():
    spec = partition_spec({"": histogram()}, Names(("Paris", "Rome"), ("cat", "dog")))
    (row,) = values(spec, client=1, **{"class": 0})
    assert (row["client_name"], row["class_name"], row["samples"]) == ("Rome", "cat", 2)
    picture = drawn(spec)
    for name in ("Client", "Paris", "Rome", "cat", "dog"):
        assert f">{name}</text>" in picture


def test_more_classes_than_fit_have_their_numbers():
    frame = pd.DataFrame({"client": [0] * 30, "label": range(30), "samples": [1] * 30})
    picture = drawn(partition_spec({"": frame}, Names(None, tuple(f"kind {i}" for i in range(30)))))
    assert ">29</text>" in picture
    assert "kind" not in re.sub(r'aria-[a-z]+="[^"]*"', "", picture)


def test_many_clients_fit_the_page():
    spec = partition_spec({"": histogram(300)}, NUMBERS)
    assert spec["width"] <= 1100
    several = partition_spec({"a": histogram(300), "b": histogram(300)}, NUMBERS)
    assert several["spec"]["width"] * 2 <= 1200
    drawn(several)


def test_page_and_print_give_methods_the_same_looks():
    methods = ("FedAvg", "FedDF", "FedSDD")
    looks = looks_of(methods)
    for layer in curves(runs(methods))["layer"]:
        for channel, of in (("shape", "shape"), ("strokeDash", None)):
            if found := layer["encoding"].get(channel):
                assert found["scale"]["domain"] == list(methods)
            if found and of:
                assert found["scale"]["range"] == [look.shape for look in looks.values()]
    colours = [look.colour for look in looks.values()]
    for spec in (curves(runs(methods)), last(runs(methods))):
        assert spec["encoding"]["color"]["scale"]["range"] == colours


def test_bands_are_drawn_from_three_seeds_on():
    spec = curves(runs(seeds=(0, 1, 2)))
    (row,) = values(spec, line="FedDF", round=2)
    interval = confidence_interval([20.1, 21.1, 22.1])
    assert (row["low"], row["high"]) == (round(interval.low, 2), round(interval.high, 2))
    assert {row["low"] for row in values(curves(runs()), seed=None)} == {None}


def test_more_than_five_curves_have_a_panel_each():
    methods = [f"method {number}" for number in range(7)]
    spec = curves(runs(methods, once=methods[-1:]))
    assert spec["facet"]["sort"] == methods[:-1]
    assert len(values(spec, line=methods[-1])) == 6  # in each panel
    assert {row["of"] for row in spec["spec"]["layer"][0]["data"]["values"]} == set(methods[:-1])
    drawn(spec)


def test_classes_go_upwards_on_the_page_and_in_print():
    spec = partition_spec({"": histogram()}, NUMBERS)
    assert spec["encoding"]["y"]["sort"] == "descending"
    low, high = draw_partition({"": histogram()}).axes[0].get_ylim()
    assert low < high


def test_bands_of_percentages_end_at_100_and_rounds_are_whole():
    frame = runs(seeds=(0, 1, 2)).assign(top1_accuracy=[99.0, 99.0, 99.9, 90.0] * 4 + [99.0] * 2)
    assert max(row["high"] for row in values(curves(frame), seed=None)) == 100.0
    assert curves(frame)["layer"][0]["encoding"]["x"]["axis"]["format"] == "d"
