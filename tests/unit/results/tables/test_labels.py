import math

import numpy as np
import pandas as pd
import pytest
from measured import described, runs_file

from fedstage.results.runs_file import ExperimentRuns
from fedstage.results.tables.labels import (
    axis_label,
    for_people,
    frame_for_people,
    human_count,
    join_for_people,
    join_labels,
    mean_and_std,
    name_points,
    place_for_people,
    settings_for_people,
    show_value,
)

LABELS = {"fedavg": "FedAvg", "fedsdd_r2": "FedSDD, R = 2"}


def experiment(**changes):
    settings = {"method": "fedsdd_r2", "partition.alpha": 0.1, "role": "test", "seed": 0}
    runs = [described(settings), described(settings | {"method": "other"})]
    axes = {"columns": ["partition.alpha"], "over": "partition.alpha", "labels": LABELS}
    return ExperimentRuns.model_validate(runs_file(runs, **axes | changes))


@pytest.mark.parametrize(
    ("axis", "label"),
    [
        ("method", "Method"),
        ("partition.alpha", "α"),
        ("server.temperature", "τ"),
        ("global_models", "K"),
        ("client.batch_size", "Client batch size"),
        ("seed", "seed"),
    ],
)
def test_axes_have_labels(axis, label):
    assert axis_label(axis) == label


def test_an_experiment_has_labels_for_axes_and_methods_and_stays_as_it_was():
    read = experiment()
    people = for_people(read)
    assert (people.rows, people.columns, people.over) == (["Method"], ["α"], "α")
    assert people.axes == ["Method", "α"]
    assert [run.settings["Method"] for run in people.runs] == ["FedSDD, R = 2", "other"]
    assert people.runs[0].settings["seed"] == 0
    assert read == experiment()
    assert for_people(experiment(over=None)).over is None


def test_settings_and_cells_have_labels():
    cells = {"method": ["fedavg", "other"], "data": "svhn"}
    shown = settings_for_people(cells, experiment())
    assert shown == {"Method": ["FedAvg", "other"], "Data": "svhn"}


def test_a_place_has_the_axes_of_the_table_only():
    settings = {"method": "fedavg", "partition.alpha": 1.0, "seed": 3}
    assert place_for_people(settings, experiment()) == {"Method": "FedAvg", "α": "1"}
    place = join_for_people(["method", "partition.alpha"], settings, experiment())
    assert place == "Method = FedAvg, α = 1"


def test_a_frame_has_labels_and_keeps_what_is_measured():
    methods = pd.Series(["fedsdd_r2", "other"], dtype="string")
    frame = pd.DataFrame({"method": methods, "role": "test", "seed": 0, "auc": [1.0, 2.0]})
    people = frame_for_people(frame, experiment())
    assert list(people["Method"]) == ["FedSDD, R = 2", "other"]
    assert people["Method"].dtype == "string"
    assert list(people["Role"]) == list(people["role"]) == ["test", "test"]
    assert list(people["auc"]) == [1.0, 2.0]
    assert "Method" not in frame


def test_two_methods_of_one_label_stay_two_rows():
    methods = pd.Series(["fedavg", "other"], dtype="string")
    same = experiment(labels={"fedavg": "FedAvg", "other": "FedAvg"})
    assert list(frame_for_people(pd.DataFrame({"method": methods}), same)["Method"]) == [
        "FedAvg",
        "FedAvg",
    ]


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ((2.0, None, 1), "2.0"),
        ((2.0, 2**0.5), "2.00 ± 1.41"),
        ((2.0, math.nan), "2.00"),
        ((math.nan, 1.0), "–"),
    ],
)
def test_a_deviation_is_left_out_where_there_is_none(numbers, text):
    assert mean_and_std(*numbers) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0"),
        (999, "999"),
        (12.5, "12.5"),
        (999.6, "1.00 × 10³"),
        (9994, "9.99 × 10³"),
        (9996, "10.0 × 10³"),
        (99_960, "100 × 10³"),
        (72e9, "72.0 × 10⁹"),
        (1.5e13, "15.0 × 10¹²"),
    ],
)
def test_large_numbers_have_three_digits_and_a_power(count, text):
    assert human_count(count) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1, "0.1"),
        (1.0, "1"),
        (np.float64(1e-5), "1e-05"),
        (20, "20"),
        (True, "true"),
        (np.bool_(False), "false"),
        ("dirichlet", "dirichlet"),
        (None, "none"),
        (pd.NA, "none"),
    ],
)
def test_values_are_written_as_a_person_would(value, text):
    assert show_value(value) == text


def test_several_axes_are_named_with_their_values():
    assert join_labels(["data", "alpha"], ["svhn", 0.1]) == "data = svhn, alpha = 0.1"
    assert join_labels([], []) == ""


def test_points_are_named_shortly_in_figures():
    frame = pd.DataFrame({"Data": ["cifar10"], "α": [0.1], "Evaluate": ["global_model"]})
    assert name_points(frame, ["Data", "α"]) == ["cifar10, α = 0.1"]
    assert name_points(frame, ["Evaluate"]) == ["global model"]
    role = pd.DataFrame({"Role": ["test", "test_own"]})
    assert name_points(role, ["Role"]) == [
        "test samples",
        "test samples as each client prepares them",
    ]
