import math

import numpy as np
import pandas as pd
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
    show_range,
    show_value,
    signed,
    signed_interval,
)

LABELS = {"fedavg": "FedAvg", "fedsdd_r2": "FedSDD, R = 2"}


def experiment(**changes):
    settings = {"method": "fedsdd_r2", "partition.alpha": 0.1, "role": "test", "seed": 0}
    runs = [described(settings), described(settings | {"method": "other"})]
    axes = {"columns": ["partition.alpha"], "over": "partition.alpha", "labels": LABELS}
    return ExperimentRuns.model_validate(runs_file(runs, **axes | changes))


def test_axes_have_labels():
    axes = ["method", "partition.alpha", "server.temperature", "client.batch_size", "seed"]
    assert [*map(axis_label, axes)] == ["Method", "α", "τ", "Client batch size", "seed"]


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
    frame = pd.DataFrame({"method": pd.Series(["fedavg", "other"], dtype="string")})
    same = experiment(labels={"fedavg": "FedAvg", "other": "FedAvg"})
    assert list(frame_for_people(frame, same)["Method"]) == ["FedAvg", "FedAvg"]


def test_a_deviation_is_left_out_where_there_is_none():
    assert mean_and_std(2.0, None, 1) == "2.0"
    assert mean_and_std(2.0, 2**0.5) == "2.00 ± 1.41"
    assert mean_and_std(2.0, math.nan) == "2.00"
    assert mean_and_std(math.nan, 1.0) == "–"


def test_differences_have_a_sign_and_an_interval_if_they_have_one():
    assert [*map(signed, (1.049, -0.3, 0.0, math.nan))] == ["+1.05", "−0.30", "+0.00", "–"]
    assert signed_interval(-1.0, -2.0, 0.5) == "−1.00 [−2.00, +0.50]"
    assert signed_interval(1.0, math.nan, math.nan) == "+1.00"
    assert signed_interval(math.nan, math.nan, math.nan) == "–"


def test_ranges_are_the_lowest_and_the_highest():
    assert [*map(show_range, ([3, 1, 2], [5, 5], []))] == ["1–3", "5", "–"]


def test_large_numbers_have_three_digits_and_a_power():
    counts = [0, 999, 12.5, 999.6, 9994, 9996, 99_960, 72e9, 1.5e13]
    assert [*map(human_count, counts)] == [
        "0", "999", "12.5", "1.00 × 10³", "9.99 × 10³", "10.0 × 10³", "100 × 10³", "72.0 × 10⁹",
        "15.0 × 10¹²",
    ]  # fmt: skip


def test_values_are_written_as_a_person_would():
    values = [0.1, 1.0, np.float64(1e-5), 20, True, np.bool_(False), "dirichlet", None, pd.NA]
    texts = ["0.1", "1", "1e-05", "20", "true", "false", "dirichlet", "none", "none"]
    assert [*map(show_value, values)] == texts


def test_several_axes_are_named_with_their_values():
    assert join_labels(["data", "alpha"], ["svhn", 0.1]) == "data = svhn, alpha = 0.1"
    assert join_labels([], []) == ""


def test_points_are_named_shortly_in_figures():
    frame = pd.DataFrame({"Data": ["cifar10"], "α": [0.1], "Evaluate": ["global_model"]})
    assert name_points(frame, ["Data", "α"]) == ["cifar10, α = 0.1"]
    assert name_points(frame, ["Evaluate"]) == ["global model"]
    role = pd.DataFrame({"Role": ["test", "test_own"]})
    named = ["test samples", "test samples as each client prepares them"]
    assert name_points(role, ["Role"]) == named
