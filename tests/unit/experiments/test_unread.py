"""Settings of an experiment's file that no run reads are told, in one line."""

import pytest
import yaml
from tests.shared.experiments import BASE_WITH_SERVER as BASE
from tests.shared.experiments import METHODS

from fedstage.experiments.catalogue import load_catalogue
from fedstage.experiments.unread import unread_settings

FORGET = {"forget": [1]}
UNREAD = "one{}: base.forget: no run reads it, as none is one_shot".format
GENERATOR = {"generator": {"cvae": {"samples": 9}}, "public": "generated"}
#: As somebody writes it who forgets what learns from the images.
MINE = {"training": "one_shot", "rounds": 1, "local_fraction": 1.0} | GENERATOR
TOLD = "one: methods.mine.generator: no run reads it, as none has a distillation"


def unread(tmp_path, base=None, methods=("fens",), own=None, scale=None, grid=None, **others):
    """Return what is told of experiment `one`, and of others that may be `like` it."""
    (tmp_path / "methods.yaml").write_text(METHODS)
    one = {
        "title": "One",
        "base": BASE | (base or {}),
        "grid": {"method": list(methods)} | (grid or {}),
        "methods": own or {},
        "scales": {"default": scale},
    }
    if grid:
        one["table"] = {"columns": list(grid)}
    experiments = {"one": one} | {
        name: {"title": name, "like": "one", "scales": {"default": None}} | content
        for name, content in others.items()
    }
    config = yaml.safe_load(yaml.safe_dump({"targets": ["one"], "experiments": experiments}))
    catalogue = load_catalogue(config, tmp_path)
    return list(unread_settings(catalogue.sources, catalogue.experiments))


def test_a_setting_of_the_other_kind_of_training_is_told(tmp_path):
    assert UNREAD("") in unread(tmp_path, base=FORGET, methods=["fedavg", "scaffold"])
    by_scale = unread(tmp_path, methods=["fedavg"], scale={"base": FORGET})
    assert UNREAD("/default") in by_scale
    assert UNREAD("") not in by_scale
    told = unread(tmp_path, base=FORGET, methods=["fens"])
    assert told == ["one: base.participants: no run reads it, as none is federated"]


def test_what_some_run_reads_is_not(tmp_path):
    assert unread(tmp_path, base=FORGET, methods=["fedavg", "fens"]) == []
    trained = BASE | {"training": "one_shot"} | FORGET
    assert UNREAD("") not in unread(tmp_path, base=trained, methods=["fens"])
    other = {"other": {"grid": {"method": ["fens"]}}}  # `like` this one
    assert unread(tmp_path, base=FORGET, methods=["fedavg"], **other) == []


def test_so_is_that_of_a_method_which_forgets_what_it_is(tmp_path):
    """Members, an unknown class, an aggregator: of a method that averages in rounds."""
    own = {
        "mine": {"members": {"best": {"count": 2}}, "unknown": {}, "aggregator": "least_unknown"}
    }
    told = unread(tmp_path, methods=["mine", "fens"], own=own)
    assert told == [
        f"one: methods.mine.{key}: no run reads it, as none is one_shot"
        for key in sorted(own["mine"])
    ]
    scale = {"methods": {"fedavg": {"members": {"random": {"count": 1}}}}}
    (recipe,) = unread(tmp_path, methods=["fedavg", "fens"], scale=scale)
    assert recipe == "one/default: methods.fedavg.members: no run reads it, as none is one_shot"
    rounds = {"fens": {"local": "fedavg"}}
    told = unread(tmp_path, methods=["fedavg", "fens"], own=rounds)
    assert told == ["one: methods.fens.local: no run reads it, as none is federated"]


def test_what_makes_or_learns_images_is_told_without_a_student(tmp_path):
    methods = ["mine", "fedavg"]
    assert unread(tmp_path, methods=methods, own={"mine": MINE}) == [TOLD]
    assert unread(tmp_path, methods=methods, own={"mine": MINE | {"distillation": "labels"}}) == []
    assert unread(tmp_path, methods=["fens", "fedavg"], base={"student": "cnn_small"}) == [
        "one: base.student: no run reads it, as none has a distillation"
    ]


@pytest.mark.parametrize(
    "reader",
    [
        {"grid": {"distillation": ["labels"]}},
        {"methods": ["mine", "like_mine"]},
        {"other": {"grid": {"method": ["like_mine"]}}},
        {"scale": {"methods": {"mine": {"distillation": "labels"}}}},
    ],
)
def test_who_may_read_it(tmp_path, reader):
    """A value of the grid, a method or an experiment that is like this one, a scale."""
    taught = {"like": "mine", "distillation": "labels"}
    own = {"mine": MINE, "like_mine": taught}
    given = {"methods": ["mine"], "own": own}
    assert TOLD in unread(tmp_path, **given)
    assert TOLD not in unread(tmp_path, **given | reader)
