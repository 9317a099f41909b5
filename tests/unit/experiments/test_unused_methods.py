"""Methods of an experiment's file that no run uses are told, in one line."""

import pytest
import yaml
from tests.shared.experiments import BASE_WITH_SERVER as BASE
from tests.shared.experiments import METHODS, experiments

from fedstage.experiments.catalogue import load_catalogue
from fedstage.experiments.unused_methods import unused_methods

PROX = {"local": {"fedprox": {"mu": 1.0}}}

CELL = {"at": {"method": "fedavg"}, "settings": {"start": "own"}}


def told(tmp_path, methods, like=None, **content):
    """Return what is told of experiment `one`, which another may be `like`."""
    (tmp_path / "methods.yaml").write_text(METHODS)
    one = {"title": "One", "base": BASE, "grid": {"method": ["fedavg"]}, "methods": methods}
    found = {"one": {**one, **content}}
    if like is not None:
        found["heir"] = {"title": "Heir", "like": "one", **like}
    config = yaml.safe_load(yaml.safe_dump({"targets": ["one"], "experiments": found}))
    catalogue = load_catalogue(config, tmp_path)
    return list(unused_methods(catalogue.sources, {"one": catalogue.experiments["one"]}))


def test_a_misspelt_method_is_told_with_what_was_meant(tmp_path):
    assert told(tmp_path, {"fedprx": PROX}) == [
        "one: methods.fedprx: no run uses it; did you mean 'fedprox'?"
    ]
    assert told(tmp_path, {"fedprox": PROX}) == ["one: methods.fedprox: no run uses it"]
    assert told(tmp_path, {"own": PROX, "owm": PROX}, grid={"method": ["own"]}) == [
        "one: methods.owm: no run uses it; did you mean 'own'?"
    ]


def test_many_are_told_in_one_line(tmp_path):
    methods = dict.fromkeys("abcdefg", PROX)
    assert told(tmp_path, methods) == ["one: methods: no run uses a, b, c, d, e and 2 more"]


def test_so_is_that_of_a_scale(tmp_path):
    scales = {"default": None, "mini": {"methods": {"fedprx": PROX}}}
    assert told(tmp_path, {}, scales=scales) == [
        "one/mini: methods.fedprx: no run uses it; did you mean 'fedprox'?"
    ]


@pytest.mark.parametrize(
    "user",
    [
        {"grid": {"method": ["own"]}},
        {"grid": {}, "base": BASE | {"method": "own"}},
        {"scales": {"default": None, "mini": {"grid": {"method": ["own"]}}}},
        {"grid": {"method": ["other"]}, "methods": {"own": PROX, "other": {"like": "own"}}},
        {"grid": {"method": ["other"]}, "methods": {"own": PROX, "other": {"start": "own"}}},
        {"base": BASE | {"start": {"method": "own", "rounds": 2}}},
        {"grid": {"start": ["own"]}, "table": {"rows": ["start"]}},
        {"implies": {"method": {"fedavg": {"start": "own"}}}},
        {"scales": {"default": {"cells": [CELL]}}},
        {"like": {"grid": {"method": ["own"]}}},
        {"like": {"grid": {"method": ["x"]}, "methods": {"x": {"like": "own"}}}},
    ],
)  # fmt: skip
def test_what_some_run_uses_is_not(tmp_path, user):
    """Of the grid of any scale, below another method, before a run, or in an experiment like it."""
    assert told(tmp_path, **{"methods": {"own": PROX}} | user) == []


def test_a_method_of_the_base_counts_only_without_one_of_the_grid(tmp_path):
    base = BASE | {"method": "own"}
    assert told(tmp_path, {"own": PROX}, base=base) == ["one: methods.own: no run uses it"]
    assert told(tmp_path, {"fedavg": PROX}, grid={}) == []


def test_the_experiments_here_use_all_their_methods():
    catalogue, _ = experiments()
    assert list(unused_methods(catalogue.sources, catalogue.experiments)) == []
