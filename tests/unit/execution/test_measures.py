"""Tables of measures that are kept outside of the folder of results."""

import shutil

import pyarrow as pa
import pytest

from fedstage.errors import FedstageError
from fedstage.execution.measures import absent_measures, load_measures
from fedstage.storage.tables import save_table


def saved(path, **columns):
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table(columns)
    save_table(path, columns, table.schema)
    return path


def test_tables_of_the_same_columns_are_one(tmp_path):
    paths = [
        saved(tmp_path / "a.parquet", seed=[0], forget_score=[1.0]),
        saved(tmp_path / "b.parquet", seed=[0], params_to_reach=[7]),
        saved(tmp_path / "c.parquet", seed=[1], forget_score=[2.0]),
    ]
    scores, reached = load_measures(paths)
    assert scores.to_pydict() == {"seed": [0, 1], "forget_score": [1.0, 2.0]}
    assert reached.to_pydict() == {"seed": [0], "params_to_reach": [7]}


def test_a_file_may_lie_in_another_folder_of_results(tmp_path):
    made = saved(tmp_path / "results/retention/mine/study.runs.parquet", seed=[0])
    kept = tmp_path / "docs/results/bkd/retention.runs.parquet"
    kept.parent.mkdir(parents=True)
    shutil.copy(made, kept)
    assert load_measures([kept])[0].to_pydict() == {"seed": [0]}


def test_a_file_that_is_missing_or_damaged_is_named(tmp_path):
    with pytest.raises(FedstageError, match=r"gone\.parquet: no such file"):
        load_measures([tmp_path / "gone.parquet"])
    damaged = saved(tmp_path / "damaged.parquet", seed=[0])
    damaged.write_bytes(damaged.read_bytes()[:-20])
    with pytest.raises(FedstageError, match=r"damaged\.parquet"):
        load_measures([damaged])


def test_measures_that_no_table_has(tmp_path):
    tables = load_measures([saved(tmp_path / "a.parquet", forget_score=[1.0])])
    metrics = {"forget_score", "fluctuation", "params_to_reach", "top1_accuracy", None}
    assert absent_measures(metrics, tables) == {
        "communication": {"params_to_reach"},
        "retention": {"fluctuation"},
    }
    assert absent_measures({"forget_score", None}, tables) == {}
