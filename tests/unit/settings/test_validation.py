import math
from typing import Literal

import pytest

from fedstage.errors import FedstageError
from fedstage.settings.base import ByName, Positive, Settings
from fedstage.settings.config_file import Config
from fedstage.settings.optimisation import Client
from fedstage.settings.recipes import Recipe
from fedstage.settings.validation import validate

RAW = {
    "data": "digits",
    "clients": 10,
    "partition": {"dirichlet": {"alpha": 0.1}},
    "participants": 4,
    "model": "cnn_small",
    "client": {"epochs": 1, "batch_size": 16, "learning_rate": 0.05},
    "seed": 0,
}


def recipes_of(settings, raw):
    with pytest.raises(FedstageError) as caught:
        validate(settings, raw, "here")
    return str(caught.value).split("\n")


def fault(**changes):
    (recipe,) = recipes_of(Recipe, {**RAW, **changes})
    return recipe


def test_valid_settings_come_back():
    assert validate(Recipe, RAW, "here").partition.alpha == 0.1


CLIENT = RAW["client"]
FAULTS = [
    ({"client": {"epochs": 1, "learning_rate": 0.1}},
     "client.batch_size: missing, a value is required"),
    # A choice's keys are named without the choice.
    ({"partition": "dirichlet"}, "partition.alpha: missing, a value is required"),
    ({"partition": {"iid": {"alpha": 1}}}, "partition.alpha = 1: unknown key"),
    ({"client": CLIENT | {"schedule": {"cosine": {"finale": 0.1}}}},
     "client.schedule.finale = 0.1: unknown key; did you mean 'final'?"),
    ({"partition": "dirichlett"},
     "partition = 'dirichlett': unknown; use 'iid', 'dirichlet', 'dirichlet_by_client', "
     "'dirichlet_equal', 'shards', 'natural', 'table'; did you mean 'dirichlet'?"),
    ({"partition": {"dirichlet": {"alpha": -0.5}}},
     "partition.alpha = -0.5: must be greater than 0"),
    ({"on_divergence": "ignore"}, "on_divergence = 'ignore': must be 'stop' or 'drop'"),
    ({"validation": math.nan}, "validation = nan: must be a finite number"),
    # A bad item of a list is one fault.
    ({"client": CLIENT | {"schedule": {"step": {"milestones": [1.5]}}}},
     "client.schedule.milestones.0 = 1.5: must be less than 1"),
    ({"validation": "a lot"}, "validation = 'a lot': must be a valid number"),
    ({"architectures": [{"cnn_small": {"width": "a"}}]},
     "architectures.0.width = 'a': must be a valid integer"),
    ({"architectures": {"cnn_small": {}}}, "architectures = {'cnn_small': {}}: must be a list"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "message"), FAULTS, ids=lambda value: str(value)[:40])
def test_a_fault_names_the_key_the_value_and_what_is_allowed(changes, message):
    assert fault(**changes) == f"here: {message}"


def test_text_with_line_breaks_stays_on_one_line():
    assert fault(on_divergence="a\nb").startswith("here: on_divergence = 'a\\nb': must be")


def test_faults_of_choices_that_are_imported_after_other_faults_are_told_alike():
    assert fault(partition={"iid": {"alpha": 1}}).startswith("here: partition.alpha = 1: ")

    class Later(Settings):
        name: Literal["imported_later"]
        size: Positive = 1

    class Latest(Settings):
        name: Literal["imported_last"]

    class Holder(Settings):
        model: ByName[Later | Latest]

    assert recipes_of(Holder, {"model": {"imported_later": {"size": 0}}}) == [
        "here: model.size = 0: must be greater than or equal to 1"
    ]


JARGON = (
    "tag", "discriminator", "instance", "extract", "dictionary", "after validation", "pattern",
)  # fmt: skip


@pytest.mark.parametrize("value", [None, {}, [1], 3, {"alpha": 1}, {"iid": {}, "natural": {}}])
def test_choice_that_is_none_says_how_to_write_one(value):
    message = fault(partition=value)
    shown = "null" if value is None else repr(value)
    assert message.startswith(f"here: partition = {shown}: ")
    assert "name" in message.partition(": ")[2]
    assert not [word for word in JARGON if word in message]
    merged = "; --config and --configfile add to a mapping that is there"
    assert message.endswith(merged) == (isinstance(value, dict) and len(value) > 1)


@pytest.mark.parametrize("value", [None, 3, "text", [1]])
def test_part_that_is_no_mapping_says_so(value):
    message = fault(client=value)
    shown = "null" if value is None else repr(value)
    assert message == f"here: client = {shown}: must be a mapping of keys to values"


@pytest.mark.parametrize("device", ["tpu", "cuda:x", "CPU", ""])
def test_device_says_what_is_allowed_in_words(device):
    message = fault(numerics={"device": device})
    assert message.startswith(f"here: numerics.device = {device!r}: must ")
    assert all(word in message for word in ("auto", "cpu", "cuda"))
    assert not [word for word in JARGON if word in message]


def test_empty_list_says_how_many_there_must_be():
    (recipe,) = recipes_of(Config, {"targets": []})
    assert recipe.startswith("here: targets = []: must ")
    assert "at least 1" in recipe
    assert not [word for word in JARGON if word in recipe]


@pytest.mark.parametrize("name", ["quickstart", "local", "data", "model", "global"])
def test_experiment_may_be_named_like_a_choice(name):
    experiment = {"titel": "x", "title": "x", "base": {}, "scales": {"default": None}}
    assert recipes_of(Config, {"targets": ["a"], "experiments": {name: experiment}}) == [
        f"here: experiments.{name}.titel = 'x': unknown key; did you mean 'title'?"
    ]


def test_settings_that_are_no_mapping():
    (recipe,) = recipes_of(Client, [1, 2])
    assert recipe.startswith("here: ")
    assert "[1, 2]" in recipe
    assert "mapping" in recipe
    assert not recipe.startswith("here:  ")


def test_a_value_of_none_of_several_types_has_one_line():
    """Beside another fault with the same value, which has its own."""

    class Jobs(Settings):
        size: Positive | Literal["all"]
        workers: Positive = 1

    assert sorted(recipes_of(Jobs, {"size": 0, "workers": 0})) == [
        "here: size = 0: must be greater than or equal to 1, or 'all'",
        "here: workers = 0: must be greater than or equal to 1",
    ]
    told = "here: size = 'many': must be a valid integer, or 'all'"
    assert recipes_of(Jobs, {"size": "many"}) == [told]
