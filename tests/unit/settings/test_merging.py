import copy

import pytest

from fedstage.settings.merging import assign, merge


def test_keys_of_both_sides_are_kept_and_the_overlay_wins():
    assert merge({"a": 1, "b": 2}, {"b": 3, "c": 4}) == {"a": 1, "b": 3, "c": 4}


def test_plain_mappings_merge_at_every_depth():
    base = {"client": {"epochs": 1, "batch_size": 8}, "numerics": {"threads": 1}}
    assert merge(base, {"client": {"epochs": 5}}) == {
        "client": {"epochs": 5, "batch_size": 8},
        "numerics": {"threads": 1},
    }


def test_only_choices_are_replaced_where_a_name_differs():
    base, overlay = {"mine": {"name": "a", "b": 1}}, {"mine": {"name": "c"}}
    assert merge(base, overlay) == {"mine": {"name": "c", "b": 1}}


def test_lists_are_replaced():
    assert merge({"a": {"b": [1, 2]}}, {"a": {"b": [3]}}) == {"a": {"b": [3]}}


@pytest.mark.parametrize("value", [None, 3, "text", [1], {}])
def test_mapping_and_anything_else_replace_each_other(value):
    assert merge({"server": {"steps": 1}}, {"server": value})["server"] == (
        {"steps": 1} if value == {} else value
    )
    assert merge({"server": value}, {"server": {"steps": 1}})["server"] == {"steps": 1}


def test_neither_side_is_changed():
    base = {"client": {"epochs": 1, "schedule": {"step": {"milestones": [0.5]}}}, "local": "fedavg"}
    overlay = {"client": {"schedule": "cosine"}, "local": {"fedprox": {"mu": "1e-3"}}}
    before = copy.deepcopy((base, overlay))
    merged = merge(base, overlay)
    merged["client"]["epochs"] = 9
    assert (base, overlay) == before


def test_choices_are_written_in_full():
    merged = merge({"model": "resnet20"}, {"partition": {"shards": {"classes_per_client": 3}}})
    assert merged == {
        "model": {"name": "resnet20"},
        "partition": {"name": "shards", "classes_per_client": 3},
    }
    assert merge({}, {"partition": {"iid": None}}) == {"partition": {"name": "iid"}}


def test_a_choice_that_names_something_else_replaces_all_settings():
    base = {"partition": {"dirichlet": {"alpha": 0.1, "min_samples": 3}}}
    assert merge(base, {"partition": "iid"}) == {"partition": {"name": "iid"}}
    assert merge(base, {"partition": {"dirichlet_equal": {"alpha": 1.0}}}) == {
        "partition": {"name": "dirichlet_equal", "alpha": 1.0}
    }


def test_a_choice_that_names_the_same_is_merged():
    base = {"partition": {"dirichlet": {"alpha": 0.1, "min_samples": 3}}}
    expected = {"partition": {"name": "dirichlet", "alpha": 1.0, "min_samples": 3}}
    assert merge(base, {"partition": {"dirichlet": {"alpha": 1.0}}}) == expected
    assert merge(base, {"partition": {"name": "dirichlet", "alpha": 1.0}}) == expected
    assert merge(base, {"partition": "dirichlet"}) == merge(base, {})


def test_settings_without_a_name_are_merged_into_the_choice():
    base = {"partition": {"dirichlet": {"alpha": 0.1, "min_samples": 3}}}
    assert merge(base, {"partition": {"alpha": 1.0}}) == {
        "partition": {"name": "dirichlet", "alpha": 1.0, "min_samples": 3}
    }


def test_a_choice_can_be_taken_away_and_set_again():
    base = {"ensemble": {"aggregated": {"checkpoints": 2}}}
    assert merge(base, {"ensemble": None}) == {"ensemble": None}
    assert merge({"ensemble": None}, {"ensemble": "clients"}) == {"ensemble": {"name": "clients"}}


def test_choices_inside_of_settings_are_choices_too():
    base = {"client": {"schedule": {"step": {"milestones": [0.5], "factor": 0.2}}}}
    assert merge(base, {"client": {"schedule": {"step": {"factor": 0.1}}}})["client"] == {
        "schedule": {"name": "step", "milestones": [0.5], "factor": 0.1}
    }
    assert merge(base, {"client": {"schedule": "cosine"}})["client"] == {
        "schedule": {"name": "cosine"}
    }


@pytest.mark.parametrize(
    ("text", "number"),
    [("1e-3", 1e-3), ("1E5", 1e5), ("-2e2", -200.0), ("+1e0", 1.0), ("1.5e3", 1500.0)],
)
def test_numbers_with_an_exponent_are_read_as_numbers(text, number):
    assert merge({"a": text}, {}) == {"a": number}
    assert merge({}, {"client": {"learning_rate": text}}) == {"client": {"learning_rate": number}}
    assert merge({}, {"local": {"fedprox": {"mu": text}}})["local"]["mu"] == number
    assert assign({}, "client.learning_rate", text) == {"client": {"learning_rate": number}}


def test_numbers_with_an_exponent_are_read_in_lists_too():
    merged = merge({}, {"client": {"schedule": {"step": {"milestones": ["5e-1", 0.7]}}}})
    assert merged["client"]["schedule"]["milestones"] == [0.5, 0.7]


@pytest.mark.parametrize("text", ["e3", "1e", "resnet20", "1e-3x", "x1e3", "0x1e3", "1 e3", ""])
def test_other_text_stays_text(text):
    assert merge({"a": text}, {"b": text}) == {"a": text, "b": text}


def test_assign_replaces_the_value_at_a_dotted_path():
    settings = {"client": {"epochs": 1, "batch_size": 8}, "seed": 0}
    assert assign(settings, "client.epochs", 5) == {
        "client": {"epochs": 5, "batch_size": 8},
        "seed": 0,
    }
    assert assign(settings, "seed", 3)["seed"] == 3
    assert settings["client"]["epochs"] == 1


def test_assign_reaches_into_choices_in_any_form():
    expected = {"partition": {"name": "dirichlet", "alpha": 1.0, "max_draws": 5}}
    full = {"partition": {"name": "dirichlet", "alpha": 0.1, "max_draws": 5}}
    short = {"partition": {"dirichlet": {"alpha": 0.1, "max_draws": 5}}}
    assert assign(full, "partition.alpha", 1.0) == expected
    assert assign(short, "partition.alpha", 1.0) == expected
    assert assign({"local": "fedprox"}, "local.mu", 0.5) == {
        "local": {"name": "fedprox", "mu": 0.5}
    }


def test_assign_reaches_three_levels_deep():
    settings = {"client": {"schedule": {"step": {"milestones": [0.5]}}, "epochs": 1}}
    assert assign(settings, "client.schedule.factor", 0.3)["client"] == {
        "schedule": {"name": "step", "milestones": [0.5], "factor": 0.3},
        "epochs": 1,
    }


def test_assign_makes_what_is_missing():
    assert assign({}, "numerics.threads", 2) == {"numerics": {"threads": 2}}
    assert assign({"server": None}, "server.steps", 2) == {"server": {"steps": 2}}


def test_assign_of_a_choice_replaces_it():
    settings = {"partition": {"dirichlet": {"alpha": 0.1}}}
    assert assign(settings, "partition", "iid") == {"partition": {"name": "iid"}}
    assert assign(settings, "partition", {"shards": {"classes_per_client": 1}}) == {
        "partition": {"name": "shards", "classes_per_client": 1}
    }


def test_assign_of_nothing_clears_a_setting_of_a_choice():
    settings = {"data": {"cifar10": {"train_size": 100}}}
    assert assign(settings, "data.train_size", None) == {
        "data": {"name": "cifar10", "train_size": None}
    }
