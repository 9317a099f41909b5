"""Base settings that no run has are refused, in one line."""

import pytest
import yaml
from tests.shared.experiments import BASE, METHODS

from fedstage.errors import FedstageError
from fedstage.experiments.catalogue import load_catalogue

MOMENTUM = {"client": {**BASE["client"], "momentum": 0.5}}  # FedNova has 0.9, FedAvg none
#: FENS has 500 rounds in the library of methods.
DEAD = {"aggregator_training": {"federated": {"rounds": 50}}}


def load(tmp_path, base=None, methods=("fens",), own=None, scale=None, **others):
    """Resolve experiment `one`, and others that may be `like` it."""
    (tmp_path / "methods.yaml").write_text(METHODS)
    one = {
        "title": "One",
        "base": BASE | (base or {}),
        "grid": {"method": list(methods)},
        "methods": own or {},
        "scales": {"default": scale},
    }
    experiments = {"one": one} | {
        name: {"title": name, "like": "one", "scales": {"default": None}} | content
        for name, content in others.items()
    }
    config = yaml.safe_load(yaml.safe_dump({"targets": ["one"], "experiments": experiments}))
    return load_catalogue(config, tmp_path)


def refused(tmp_path, **changes):
    with pytest.raises(FedstageError) as caught:
        load(tmp_path, **changes)
    (line,) = str(caught.value).splitlines()
    return line


def rounds_of(catalogue, name="one"):
    (run,) = catalogue.runs[name, "default"]
    return run.recipe.aggregator_training.rounds


def test_a_base_setting_that_every_method_overrides_is_refused(tmp_path):
    assert refused(tmp_path, base=DEAD) == (
        "one: base.aggregator_training.rounds = 50: reaches no run, because method fens has 500; "
        "set it in methods.fens, or leave it out"
    )


def test_so_is_that_of_a_scale(tmp_path):
    recipe = refused(tmp_path, scale={"base": DEAD})
    assert recipe.startswith("one/default: base.aggregator_training.rounds = 50: reaches no run")


def test_a_whole_choice_is_named_by_its_key(tmp_path):
    recipe = refused(tmp_path, base={"local": "fedavg"}, methods=["scaffold"])
    assert recipe.startswith("one: base.local = 'fedavg': reaches no run, because method scaffold ")


def test_a_setting_that_one_method_leaves_is_good(tmp_path):
    load(tmp_path, base=MOMENTUM, methods=["fednova", "fedavg"])
    recipe = refused(tmp_path, base=MOMENTUM, methods=["fednova"])
    assert "base.client.momentum = 0.5" in recipe


def test_the_same_value_is_good(tmp_path):
    same = {"aggregator_training": {"federated": {"rounds": 500}}}
    assert rounds_of(load(tmp_path, base=same)) == 500


def test_what_the_experiments_own_methods_override_is_for_its_author_to_see(tmp_path):
    own = {"fedavg": {"client": {"learning_rate": 0.1}}}
    load(tmp_path, methods=["fedavg"], own=own)


def test_the_remedy_works(tmp_path):
    assert rounds_of(load(tmp_path, own={"fens": DEAD})) == 50


def test_a_method_that_is_like_another_overrides_as_that_does(tmp_path):
    own = {"mine": {"like": "fens", "quantisation": "int8"}}
    assert "because method mine has 500" in refused(tmp_path, base=DEAD, methods=["mine"], own=own)


def test_a_base_may_be_meant_for_an_experiment_that_is_like_it(tmp_path):
    base = MOMENTUM
    child = {"grid": {"method": ["fedavg"]}}
    found = load(tmp_path, base=base, methods=["fednova"], child=child)
    (run,) = found.runs["child", "default"]
    assert run.recipe.client.momentum == 0.5


def test_a_base_may_be_meant_for_an_experiment_that_is_like_an_heir(tmp_path):
    child = {"grid": {"method": ["fednova"]}, "base": {"clients": 7, "participants": 7}}
    grandchild = {"like": "child", "grid": {"method": ["fedavg"]}, "base": {"clients": 9}}
    found = load(tmp_path, base=MOMENTUM, methods=["fednova"], child=child, grandchild=grandchild)
    (run,) = found.runs["grandchild", "default"]
    assert (run.recipe.client.momentum, run.recipe.participants, run.recipe.clients) == (0.5, 7, 9)


def test_what_is_inherited_is_not_refused_and_what_is_added_is(tmp_path):
    base = MOMENTUM
    child = {"grid": {"method": ["fednova"]}}
    load(tmp_path, base=base, methods=["fedavg"], child=child)
    recipe = refused(tmp_path, methods=["fedavg"], child=child | {"base": MOMENTUM})
    assert recipe.startswith("child: base.client.momentum = 0.5: reaches no run")


def test_a_method_that_others_start_from_counts(tmp_path):
    own = {"after": {"local": "scaffold", "start": "fedavg"}}
    base = {"aggregation": {"weights": "samples"}, "local": "fedavg"}
    load(tmp_path, base=base, methods=["after"], own=own)


def test_the_length_of_runs_may_be_a_methods_own(tmp_path):
    """Methods of one shot have one round, whatever the base says of others."""
    load(tmp_path, base={"rounds": 20})
