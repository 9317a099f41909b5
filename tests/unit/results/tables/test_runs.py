import pandas as pd
import pytest
from measured import described, runs_file, write_metrics

from fedstage.errors import FedstageError
from fedstage.results.tables.measured import read_metrics
from fedstage.results.tables.runs import last_rounds, read_runs
from fedstage.storage.files import load_json, save_json


def write_runs(folder, settings, rows=("method",), columns=(), accuracies=(50.0, 60.0), **changes):
    runs = [
        described(point, write_metrics(folder / f"run{i}.parquet", list(accuracies)))
        for i, point in enumerate(settings)
    ]
    axes = {"rows": list(rows), "columns": list(columns)}
    path = folder / "runs.json"
    save_json(path, runs_file(runs) | axes | changes)
    return path


def point(method="fedavg", seed=0, **more):
    return {"method": method, "seed": seed, **more}


def test_frame_has_a_row_a_run_and_round_in_the_order_of_the_file(tmp_path):
    path = write_runs(tmp_path, [point("scaffold"), point("fedavg")])
    experiment, frame = read_runs(path)
    assert experiment.rows == ["method"]
    assert list(frame["method"]) == ["scaffold", "scaffold", "fedavg", "fedavg"]
    assert list(frame["round"]) == [1, 2, 1, 2]
    assert list(frame["top1_accuracy"]) == [50.0, 60.0, 50.0, 60.0]
    assert list(frame["run"]) == [0, 0, 1, 1]
    assert frame["client_std"].isna().all()


def test_settings_keep_their_types(tmp_path):
    points = [
        point("a", lr=0.1, clients=10, mask=True, clip=None, mixed=1),
        point("b", lr=1, clients=20, mask=False, clip=2.5, mixed="all"),
    ]
    _, frame = read_runs(write_runs(tmp_path, points))
    kinds = {name: str(frame[name].dtype) for name in ("lr", "clients", "mask", "clip", "mixed")}
    assert kinds == {
        "lr": "Float64",
        "clients": "Int64",
        "mask": "boolean",
        "clip": "Float64",
        "mixed": "string",
    }
    assert list(frame["mixed"].unique()) == ["1", "all"]
    assert pd.isna(frame["clip"].iloc[0])


def test_last_rounds_keeps_runs_apart_that_share_their_metrics_file(tmp_path):
    path = write_runs(tmp_path, [point("fedavg"), point("scaffold")])
    content = load_json(path)
    content["runs"][1]["metrics"] = content["runs"][0]["metrics"]
    save_json(path, content)
    _, frame = read_runs(path)
    last = last_rounds(frame)
    assert list(last["method"]) == ["fedavg", "scaffold"]
    assert list(last["round"]) == [2, 2]


def test_metrics_without_rows_are_refused_by_name(tmp_path):
    path = write_metrics(tmp_path / "empty.parquet", [])
    with pytest.raises(FedstageError, match=r"empty\.parquet: has no rows"):
        read_metrics(path)


@pytest.mark.parametrize("accuracy", [float("nan"), float("inf")])
def test_an_accuracy_that_is_not_a_number_is_refused_with_file_and_round(tmp_path, accuracy):
    path = write_metrics(tmp_path / "bad.parquet", [50.0, accuracy, 60.0])
    with pytest.raises(FedstageError, match=r"bad\.parquet: top1_accuracy = .* in round 2"):
        read_metrics(path)


def test_a_round_that_is_there_twice_is_refused(tmp_path):
    path = write_metrics(tmp_path / "twice.parquet", [50.0, 60.0, 70.0], round=[1, 2, 2])
    with pytest.raises(FedstageError, match=r"twice\.parquet: round = 2"):
        read_metrics(path)


def test_two_runs_of_the_same_place_and_seed_are_refused_with_the_axis_that_tells_them_apart(
    tmp_path,
):
    points = [point(mu=0.1), point(seed=1, mu=0.1), point(mu=0.2)]
    path = write_runs(tmp_path, points)
    message = r"method = fedavg, seed = 0: two runs \(.*run0\.parquet, .*run2\.parquet\).*make mu"
    with pytest.raises(FedstageError, match=message):
        read_runs(path)


def test_test_and_validation_accuracies_are_not_mixed(tmp_path):
    path = write_runs(tmp_path, [point(), point("scaffold")])
    write_metrics(tmp_path / "run1.parquet", [50.0, 60.0], role=["validation"] * 2)
    with pytest.raises(FedstageError, match=r"test in .*run0.*validation in .*run1"):
        read_runs(path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"runs": []}, "runs"),
        ({"rows": []}, "rows"),
        ({"metric": "loss"}, "metric = 'loss'"),
        ({"metrics": "x"}, "metrics = 'x': unknown key"),
    ],
)
def test_runs_json_is_checked(tmp_path, changes, message):
    with pytest.raises(FedstageError, match=message):
        read_runs(write_runs(tmp_path, [point()], **changes))


# --- published numbers ----------------------------------------------------------------------------


def with_numbers(path, numbers, **changes):
    content = load_json(path) | {"published": "FedSDD, Table 2"} | changes
    for run, number in zip(content["runs"], numbers, strict=True):
        run["published"] = number
    save_json(path, content)
    return path


def test_each_run_carries_its_published_number(tmp_path):
    path = write_runs(tmp_path, [point("fedavg"), point("fedsdd"), point("own")])
    numbers = [{"value": 88.53, "std": 0.31, "seeds": 3}, {"value": 0.0}, None]
    experiment, frame = read_runs(with_numbers(path, numbers, notes=["a note"]))
    last = last_rounds(frame)
    assert list(last["published"][:2]) == [88.53, 0.0]
    assert list(last["published_std"].isna()) == [False, True, True]
    assert last["published_seeds"].dtype == "Int64"
    assert last["published_seeds"][0] == 3
    assert last["published"].isna()[2]
    assert (experiment.published, experiment.notes) == ("FedSDD, Table 2", ["a note"])


def test_the_maximum_stands_beside_the_rounds_where_it_is_asked_for(tmp_path):
    points = [{"method": "fedavg", "seed": seed} for seed in (0, 1)]
    settings = {"accuracies": (50.0, 70.0, 60.0), "also": ["maximum"]}
    _, frame = read_runs(write_runs(tmp_path, points, **settings))
    assert set(last_rounds(frame)["as_released"]) == {70.0}
    assert list(last_rounds(frame)["top1_accuracy"]) == [60.0, 60.0]
    _, frame = read_runs(write_runs(tmp_path, points, accuracies=(50.0, 70.0, 60.0)))
    assert "as_released" not in frame


def test_the_maximum_of_an_aggregator_is_over_its_training_and_its_end(tmp_path):
    """Of one run the end is the highest, of the other a round before."""
    points = [point(seed=seed) for seed in (0, 1)]
    path = write_runs(tmp_path, points, accuracies=(60.0,), also=["maximum"])
    content = load_json(path)
    for run, accuracies in zip(content["runs"], ([59.0, 58.0], [70.0, 50.0]), strict=True):
        later = tmp_path / f"later{run['settings']['seed']}.parquet"
        run["over_rounds"] = write_metrics(later, accuracies)
    save_json(path, content)
    _, frame = read_runs(path)
    assert list(frame["as_released"]) == [60.0, 70.0]
    assert list(frame["top1_accuracy"]) == [60.0, 60.0]
