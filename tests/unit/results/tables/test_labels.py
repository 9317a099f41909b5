import math

import pandas as pd
from measured import described, runs_file

from fedstage.experiments.runs_file import ExperimentRuns
from fedstage.results.tables.labels import (
    for_people,
    frame_for_people,
    name_points,
    signed,
    signed_interval,
)

LABELS = {"fedavg": "FedAvg", "fedsdd_r2": "FedSDD, R = 2"}


def experiment(**changes):
    settings = {"method": "fedsdd_r2", "partition.alpha": 0.1, "role": "test", "seed": 0}
    runs = [described(settings), described(settings | {"method": "other"})]
    axes = {"columns": ["partition.alpha"], "over": "partition.alpha", "labels": LABELS}
    return ExperimentRuns.model_validate(runs_file(runs, **axes | changes))


def test_an_experiment_has_labels_for_axes_and_methods_and_stays_as_it_was():
    read = experiment()
    people = for_people(read)
    assert (people.rows, people.columns, people.over) == (["Method"], ["α"], "α")
    assert people.axes == ["Method", "α"]
    assert [run.settings["Method"] for run in people.runs] == ["FedSDD, R = 2", "other"]
    assert people.runs[0].settings["seed"] == 0
    assert read == experiment()
    assert for_people(experiment(over=None)).over is None


def test_a_frame_has_labels_and_keeps_what_is_measured():
    methods = pd.Series(["fedsdd_r2", "other"], dtype="string")
    frame = pd.DataFrame({"method": methods, "role": "test", "seed": 0, "auc": [1.0, 2.0]})
    people = frame_for_people(frame, experiment())
    assert list(people["Method"]) == ["FedSDD, R = 2", "other"]
    assert people["Method"].dtype == "string"
    assert list(people["Role"]) == list(people["role"]) == ["test", "test"]
    assert list(people["auc"]) == [1.0, 2.0]
    assert "Method" not in frame


def test_differences_have_a_sign_and_an_interval_if_they_have_one():
    assert [*map(signed, (1.049, -0.3, 0.0, math.nan))] == ["+1.05", "−0.30", "+0.00", "–"]
    assert signed_interval(-1.0, -2.0, 0.5) == "−1.00 [−2.00, +0.50]"
    assert signed_interval(1.0, math.nan, math.nan) == "+1.00"
    assert signed_interval(math.nan, math.nan, math.nan) == "–"


def test_points_are_named_shortly_in_figures():
    frame = pd.DataFrame({"Data": ["cifar10"], "α": [0.1], "Evaluate": ["global_model"]})
    assert name_points(frame, ["Data", "α"]) == ["cifar10, α = 0.1"]
    assert name_points(frame, ["Evaluate"]) == ["global model"]
    role = pd.DataFrame({"Role": ["test", "test_own"]})
    named = ["test samples", "test samples as each client prepares them"]
    assert name_points(role, ["Role"]) == named
