import json

import pandas as pd
import pytest
import vl_convert

from fedstage.results.figures.looks import looks_of
from fedstage.results.figures.names import Names
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


def test_runs_that_are_evaluated_once_are_named_levels():
    frame = runs(once=("FedDF",))
    (level,) = [row for row in values(curves(frame)) if row["line"] == "FedDF"]
    assert (level["once"], level["value"]) == (True, 30.6)
    assert drawn(curves(frame)).count(">FedDF<") == 2  # in the legend, and at its level
    assert {row["line"] for row in values(last(frame))} == {"FedAvg", "FedDF"}
    assert curves(runs(once=("FedAvg", "FedDF"))) is None


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
