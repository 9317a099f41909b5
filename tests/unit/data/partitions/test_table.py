"""Table: a partition of others."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedstage.data.partitions import divide
from fedstage.errors import FedstageError
from fedstage.settings.data import DataOption
from fedstage.settings.partitions import PartitionTable
from fedstage.settings.samples import check_clients
from fedstage.settings.validation import validate


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDSTAGE_DATA", str(tmp_path))
    return tmp_path


def divided(name, clients, samples=6, **keys):
    settings = PartitionTable(name="table", file=name, **keys)
    labels = np.zeros(samples, np.int64)
    return [own.tolist() for own in divide(settings, labels, clients, np.random.default_rng(0))]


def test_each_client_has_the_samples_of_its_rows(place, caplog):
    rows = "index,client\n5,10\n0,9\n3,10\n1,9\n4,9\n"
    (place / "by.csv").write_text(rows)
    assert divided("by.csv", 2) == [[0, 1, 4], [5, 3]]  # 9 is before 10
    assert caplog.messages == [f"{place}/by.csv: 1 of 6 training samples have no client: 2"]
    table = pa.table({"idx": [5, 0, 3, 1, 4], "site": ["b", "a", "b", "a", "a"]})
    pq.write_table(table, place / "by.parquet")
    assert divided("by.parquet", 2, index="idx", client="site") == [[0, 1, 4], [5, 3]]


@pytest.mark.parametrize(
    ("rows", "clients", "fault"),
    [
        ("0,a\n6,b", 2, r"by.csv: row 3: index = 6; must be a training sample, 0 to 5"),
        ("0,a\n-1,b", 2, r"row 3: index = -1; must be a training sample"),
        ("0,a\n1.5,b", 2, r"row 3: index = 1.5; must be a training sample"),
        ("0,a\n,b", 2, r"row 3: index: missing; must be a training sample"),
        ("0,a\n1,b\n0,b", 2, r"sample 0 is 2 times in the shares of clients \[0, 1\]"),
        ("0,a\nx1,b", 2, r"partition.index = 'index': column is string; must be integers"),
        ("0,a\n1,", 2, r"row 3: client: missing; a value is required"),
        ("0,a\n1,b", 3, r"clients = 3: must be 2, as in .*by.csv"),
    ],
)
def test_what_is_no_partition_is_refused(place, rows, clients, fault):
    (place / "by.csv").write_text(f"index,client\n{rows}\n")
    with pytest.raises(FedstageError, match=fault):
        divided("by.csv", clients)


def test_a_missing_file_or_column_is_named(place):
    with pytest.raises(FedstageError, match=r"by.csv"):
        divided("by.csv", 2)
    (place / "by.csv").write_text("index,owner\n0,a\n")
    with pytest.raises(FedstageError, match=r"partition.client = 'client': no such column; its"):
        divided("by.csv", 1)


@pytest.mark.parametrize(
    "data", [{"cifar10": {"held_out": 5}}, {"cifar10": {"train_size": 5}}, {"digits": None}]
)
def test_positions_are_of_the_whole_training_split(data):
    chosen = validate(DataOption, {"data": data}, "").data
    faults = list(check_clients(chosen, PartitionTable(name="table", file="by.csv")))
    assert "not with partition = table" in faults[0]
    whole = validate(DataOption, {"data": "cifar10"}, "").data
    assert not list(check_clients(whole, PartitionTable(name="table", file="by.csv")))
