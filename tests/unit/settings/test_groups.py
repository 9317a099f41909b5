"""Who trains which global model: participants, and faults, each in one line."""

import pytest

from fedstage.errors import FedstageError
from fedstage.protocol.groups import client_groups, group_participants, model_of, models_of
from fedstage.settings.equivalences import simplest
from fedstage.settings.models import Head
from fedstage.settings.recipes import Recipe
from fedstage.settings.validation import validate

HEAD = {"hidden": 12, "width": 8}
SMALL, LARGE = ({"cnn_small": {"width": width, "head": HEAD}} for width in (4, 8))
SERVER = {"steps": 2, "batch_size": 8, "learning_rate": 0.1}
RAW = {
    "data": {"digits": {"held_out": 50, "server_validation": 20}},
    "clients": 10,
    "partition": "iid",
    "participants": 8,
    "model": "cnn_small",
    "client": {"epochs": 1, "batch_size": 16, "learning_rate": 0.05},
    "seed": 0,
}
SERVED = {"global_models": 3, "server_model": True}
HEADS = {
    **SERVED,
    "model": LARGE,
    "architectures": [LARGE, SMALL, SMALL],
    "client_groups": "drawn",
    "head_sharing": True,
}
FEDET = {
    **HEADS,
    "ensemble": {"clients": {"weights": "confidence", "average": "probabilities"}},
    "global": "designated",
    "server": SERVER,
}
DIGEST = {"local": "digest", "ensemble": "clients", "server": SERVER}
DSFL = {**DIGEST, **SERVED, "client_groups": "drawn", "global": "designated"}


def recipe(**changes):
    return validate(Recipe, RAW | changes, "here")


def fault(**changes):
    with pytest.raises(FedstageError) as caught:
        recipe(**changes)
    (only,) = str(caught.value).split("\n")
    return only


def participants(**changes):
    one = recipe(**changes)
    return [list(group_participants(one, group)) for group in range(one.global_models)]


# --- participants ---------------------------------------------------------------------------------


def test_the_servers_model_has_no_participants_and_the_others_share_them():
    assert participants(**SERVED) == [[], [0, 1, 2, 3], [4, 5, 6, 7]]
    assert list(client_groups(recipe(**SERVED))) == [1, 2]
    assert list(client_groups(recipe(global_models=3))) == [0, 1, 2]


def test_what_is_left_goes_to_the_first_groups_that_clients_train():
    found = participants(global_models=4, server_model=True)
    assert [len(own) for own in found] == [0, 3, 3, 2]
    assert [participant for own in found for participant in own] == list(range(8))


def test_groups_that_are_drawn_have_a_participant_for_every_participant():
    assert participants(**SERVED, client_groups="drawn") == [[], list(range(8)), list(range(8, 16))]
    assert participants(global_models=2, client_groups="drawn") == [
        list(range(8)),
        list(range(8, 16)),
    ]


def test_groups_that_are_drawn_may_be_more_than_participants():
    assert len(participants(global_models=5, participants=2, client_groups="drawn")) == 5
    assert "participants = 2: at least global_models = 5" in fault(global_models=5, participants=2)


def test_a_group_has_its_architecture_and_group_0_the_main_model():
    one = recipe(**HEADS)
    assert [model_of(one, group).width for group in range(3)] == [8, 4, 4]


def test_a_single_group_that_clients_train_is_not_drawn():
    one = recipe(global_models=2, server_model=True, client_groups="drawn")
    assert simplest(one).client_groups == "by_index"
    assert simplest(recipe(**SERVED, client_groups="drawn")).client_groups == "drawn"


# --- faults of groups -----------------------------------------------------------------------------


def test_models_without_a_head_have_the_default_one_of_what_needs_it():
    plain = {"cnn_small": {"width": 4}}
    of_moon = Head(hidden=128, width=256, relu=False)  # Li, He, Song 2021, Section 3.2
    assert recipe(local="moon").model.head == of_moon
    assert recipe(local="moon") == recipe(local="moon", model={"cnn_small": {"head": of_moon}})
    assert recipe(local="moon", model=SMALL).model.head == Head(**HEAD)
    assert recipe(local="fedavg").model.head is None

    several = {"architectures": ["cnn_small", plain, plain], "model": "cnn_small"}
    shared = recipe(**HEADS | several)
    assert {model.head for model in models_of(shared)} == {Head()}  # of Fed-ET


# --- faults of recipes ----------------------------------------------------------------------------


def test_methods_of_the_family_are_valid():
    assert recipe(**FEDET).head_sharing
    assert recipe(**DSFL).global_trainer.name == "designated"
    assert recipe(**DIGEST, global_models=2, client_groups="drawn").global_trainer is None
    assert recipe(**DIGEST).ensemble.name == "clients"  # a single group has no groups to draw


UPPER, LOWER, WIDE = "resnet_upper", "resnet_lower", {"resnet_lower": {"width": 8}}
GKT = {
    **SERVED,
    "local": "gkt",
    "model": UPPER,
    "architectures": [UPPER, LOWER, LOWER],
    "client_groups": "drawn",
    "server": SERVER,
}


def test_lower_parts_of_several_depths_go_with_one_upper_part_and_alone():
    deep = {"resnet_lower": {"blocks": 5}}
    assert recipe(**GKT | {"architectures": [UPPER, LOWER, deep]}).local.name == "gkt"
    assert recipe(model=LOWER).local.name == "fedavg"
