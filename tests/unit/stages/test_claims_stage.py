import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from measured import CANDIDATES, write_metrics
from tests.shared.stages import call

from fedstage.errors import FedstageError
from fedstage.plan.results import FORMATS
from fedstage.results.claims.report import SCHEMA
from fedstage.stages.figures import comparison
from fedstage.storage.files import load_json, save_json
from fedstage.storage.tables import save_table

ACCURACIES = {"fedsdd": [70.0, 72.0, 71.0], "fedavg": [60.0, 61.0, 61.5]}
PUBLISHED = {"fedsdd": {"value": 89.06, "std": 0.19, "seeds": 3}, "fedavg": {"value": 88.53}}
ABOUT = {"text": "t", "place": "p", "experiment": "e"}
ABOVE = ABOUT | {"id": "above", "greater": {"method": "fedsdd"}, "than": {"method": "fedavg"}}
SLOWER = ABOUT | {
    "id": "slower",
    "metric": "seconds",
    "ratio": {"method": "fedsdd"},
    "to": {"method": "fedavg"},
    "at_least": 1.2,
}


@pytest.fixture
def runs(tmp_path):
    listed = [
        {
            "settings": {"method": method, "seed": seed},
            "metrics": write_metrics(
                tmp_path / f"{method}{seed}.parquet", [9.0, accuracy], auc=[60.0] * 2
            ),
            "partition": "unread",
            "candidates": CANDIDATES,
            "published": PUBLISHED[method],
        }
        for method, accuracies in ACCURACIES.items()
        for seed, accuracy in enumerate(accuracies)
    ]
    content = {
        "experiment": "e",
        "scale": "mini",
        "title": "The title",
        "rows": ["method"],
        "published": "FedSDD, Table 2",
        "notes": ["Measured at scale `mini`."],
        "runs": listed,
    }
    path = tmp_path / "runs.json"
    save_json(path, content)
    return path


def make(runs, *wanted, name="claims", **more):
    definitions = runs.parent / "definitions.json"
    save_json(definitions, {"claims": list(wanted)})
    kinds = {"csv": "csv", "parquet": "parquet", "markdown": "md", "html": "html"}
    paths = {kind: runs.parent / f"{name}.{suffix}" for kind, suffix in kinds.items()}
    call("claims", {"runs": runs, "definitions": definitions} | paths | more)
    return paths


def test_a_claim_is_judged_by_the_last_rounds(runs):
    paths = make(runs, ABOVE)
    (row,) = pq.read_table(paths["parquet"]).to_pylist()
    assert row["mean"] == pytest.approx((10 + 11 + 9.5) / 3)
    assert (row["seeds"], row["verdict"], row["claim_verdict"]) == (3, "holds", "holds")
    assert row["published"] == pytest.approx(0.53)
    assert row["published_holds"] is True
    assert pq.read_schema(paths["parquet"]).names == SCHEMA.names
    table = pd.read_csv(paths["csv"])
    assert list(table.columns) == SCHEMA.names
    assert table["mean"].iloc[0] == row["mean"]
    text = paths["markdown"].read_text(encoding="utf-8")
    assert text.startswith("# The title: claims\n\nExperiment `e` at scale `mini`")
    assert text.endswith("- Measured at scale `mini`.\n")
    assert "<h2>The title: claims</h2>" in paths["html"].read_text(encoding="utf-8")


def test_the_same_claims_give_the_same_bytes(runs):
    one, other = make(runs, ABOVE, name="one"), make(runs, ABOVE, name="other")
    for kind in one:
        assert one[kind].read_bytes() == other[kind].read_bytes()


def test_other_measurements_are_read_from_a_table(runs):
    path = runs.parent / "timings.parquet"
    columns = {
        "method": ["fedsdd", "fedsdd", "fedavg", "fedavg"],
        "seed": [0, 1, 0, 1],
        "seconds": [20.0, 21.0, 10.0, 10.0],
    }
    schema = pa.schema([("method", pa.string()), ("seed", pa.int64()), ("seconds", pa.float64())])
    save_table(path, columns, schema)
    paths = make(runs, SLOWER, measurements=[path])
    (row,) = pq.read_table(paths["parquet"]).to_pylist()
    assert (row["mean"], row["seeds"], row["verdict"]) == (2.05, 2, "holds")
    assert (row["metric"], row["published"]) == ("seconds", None)
    assert "Experiment `e` at scale `mini`: `seconds` of each run." in paths["markdown"].read_text()
    # What the table does not have is read from the runs' metrics.
    paths = make(runs, ABOVE, SLOWER, name="both", measurements=[path])
    both = pq.read_table(paths["parquet"]).to_pylist()
    assert [one["metric"] for one in both] == ["top1_accuracy", "seconds"]
    assert both[0]["mean"] == pytest.approx((10 + 11 + 9.5) / 3)
    text = paths["markdown"].read_text()
    assert "accuracy on test data after round" in text
    assert "Some claims are about `seconds` of each run." in text


def test_each_claim_is_judged_by_the_table_that_has_its_metric(runs):
    paths = []
    for name, values in (("seconds", [20.0, 10.0]), ("bytes", [3.0, 1.0])):
        schema = pa.schema([("method", pa.string()), ("seed", pa.int64()), (name, pa.float64())])
        columns = {"method": ["fedsdd", "fedavg"], "seed": [0, 0], name: values}
        paths.append(save_table(path := runs.parent / f"{name}.parquet", columns, schema) or path)
    heavier = SLOWER | {"id": "heavier", "metric": "bytes"}
    rows = pq.read_table(make(runs, SLOWER, heavier, measurements=paths)["parquet"]).to_pylist()
    assert [row["mean"] for row in rows] == [2.0, 3.0]


def test_published_seconds_stand_beside_measured_ones(runs):
    content = load_json(runs)
    save_json(runs, content | {"metric": "round_s"})
    path = runs.parent / "timings.parquet"
    columns = {"method": ["fedsdd", "fedavg"], "seed": [0, 0], "round_s": [1.0, None]}
    schema = pa.schema([("method", pa.string()), ("seed", pa.int64()), ("round_s", pa.float64())])
    save_table(path, columns, schema)
    claim = {key: value for key, value in SLOWER.items() if key != "metric"}
    (row,) = pq.read_table(make(runs, claim, measurements=[path])["parquet"]).to_pylist()
    assert row["published"] == pytest.approx(89.06 / 88.53)
    assert (row["seeds"], row["verdict"]) == (0, "not measured")
    about_loss = ABOVE | {"id": "loss", "metric": "loss"}
    text = make(runs, claim, about_loss, measurements=[path])["markdown"].read_text()
    assert "at scale `mini`: `round_s` of each run." in text
    with pytest.raises(FedstageError, match="metric = 'round_s': must be one of top1_accuracy"):
        comparison(runs=runs, figure=[runs.parent / "f.png"])


def test_what_was_not_measured_is_told_and_nothing_is_written(runs):
    with pytest.raises(FedstageError, match="metric = 'seconds': not measured"):
        make(runs, SLOWER)
    assert not list(runs.parent.glob("claims.*"))


def test_a_claim_about_cells_of_another_scale_is_not_measured(runs):
    paths = make(runs, ABOVE | {"greater": {"method": "feddf"}}, ABOVE | {"id": "b"})
    rows = pq.read_table(paths["parquet"]).to_pylist()
    assert [row["claim"] for row in rows] == ["b"]
    assert "| not measured" in paths["markdown"].read_text(encoding="utf-8")


def test_definitions_are_checked(runs):
    with pytest.raises(FedstageError, match=r"definitions\.json: claims\.0\.greter"):
        make(runs, ABOVE | {"greter": {}})


def test_a_comparison_is_drawn_in_all_formats(runs, tmp_path):
    comparison(runs=runs, figure=[tmp_path / f"f.{kind}" for kind in FORMATS])
    assert "Filled: measured." in (tmp_path / "f.txt").read_text()
    assert (tmp_path / "f.png").stat().st_size > 10_000


def test_claims_and_comparison_are_of_the_tables_metric(runs, tmp_path):
    comparison(runs=runs, figure=[tmp_path / "accuracy.png"])
    save_json(runs, load_json(runs) | {"metric": "auc"})
    comparison(runs=runs, figure=[tmp_path / "area.png"])
    assert (tmp_path / "area.png").read_bytes() != (tmp_path / "accuracy.png").read_bytes()
    (row,) = pq.read_table(make(runs, ABOVE)["parquet"]).to_pylist()
    assert (row["metric"], row["mean"]) == ("auc", 0.0)  # all areas are 60


def test_no_figure_without_published_numbers(runs, tmp_path):
    content = load_json(runs)
    del content["published"]
    save_json(runs, content)
    with pytest.raises(FedstageError, match="no cell has a published number"):
        comparison(runs=runs, figure=[tmp_path / "f.png"])
