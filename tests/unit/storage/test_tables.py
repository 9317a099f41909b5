"""Tables in files."""

import subprocess
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedstage.errors import FedstageError
from fedstage.storage.tables import load_foreign_table, load_table, save_table

SCHEMA = pa.schema([("client", pa.int32()), ("sample", pa.int64()), ("role", pa.string())])
COLUMNS = {
    "client": [1, 1, 2, 2],
    "sample": [0, 5, 6, 9],
    "role": ["train", "train", "validation", "train"],
}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "results/a/rounds.parquet"
    save_table(path, COLUMNS, SCHEMA)
    return path


def refusal(path, columns=None):
    with pytest.raises(FedstageError) as caught:
        load_table(path, columns)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message


def test_table_comes_back_with_its_schema(path):
    table = load_table(path)
    assert table.to_pydict() == COLUMNS
    assert table.schema.remove_metadata() == SCHEMA
    chosen = {name: COLUMNS[name] for name in ("sample", "client")}
    assert load_table(path, ["sample", "client"]).to_pydict() == chosen
    save_table(path, {"loss": [0.5, None]}, pa.schema([("loss", pa.float64())]))
    assert load_table(path).to_pydict() == {"loss": [0.5, None]}
    save_table(path, {"loss": []}, pa.schema([("loss", pa.float64())]))
    assert load_table(path).to_pydict() == {"loss": []}


def test_columns_are_taken_in_the_order_of_the_schema_whatever_they_are(tmp_path, path):
    turned = {name: np.array(COLUMNS[name]) for name in reversed(COLUMNS)}
    other = tmp_path / "other" / path.relative_to(tmp_path)
    save_table(other, turned | {"more": [1, 2, 3, 4]}, SCHEMA)
    assert other.read_bytes() == path.read_bytes()


def test_no_byte_may_change_or_be_missing(path):
    raw = path.read_bytes()
    for place, bits in product(range(len(raw)), (0x01, 0x80, 0xFF)):
        altered = bytearray(raw)
        altered[place] ^= bits
        path.write_bytes(altered)
        assert "truncated or altered" in refusal(path), place
    for damaged in (*(raw[:length] for length in range(len(raw))), raw + b"\0"):
        path.write_bytes(damaged)
        assert "truncated or altered" in refusal(path), len(damaged)


def test_no_file_and_no_column_are_refused(tmp_path, path):
    assert "has no column 'participant'" in refusal(path, ["participant"])
    assert "No such file" in refusal(tmp_path / "none.parquet")


def test_a_table_without_a_digest_is_refused_and_the_users_are_read(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table(COLUMNS, schema=SCHEMA), path)
    assert "truncated or altered" in refusal(path)
    assert load_foreign_table(path, ["role"]).to_pydict() == {"role": COLUMNS["role"]}
    with pytest.raises(FedstageError, match="has no column 'x'"):
        load_foreign_table(path, ["x"])


def test_pandas_reads_it(path):
    import pandas as pd

    assert pd.read_parquet(path).to_dict("list") == COLUMNS


THREADS = """
import sys
from pathlib import Path
import pyarrow as pa, pyarrow.parquet, pandas
from fedstage.storage import tables

def count():
    return len(list(Path("/proc/self/task").iterdir()))

before = count()
schema = pa.schema([("round", pa.int32()), ("name", pa.string())])
tables.save_table(sys.argv[1], {"round": [1, 2], "name": ["a", "b"]}, schema)
for read in (tables.load_table, tables.load_foreign_table):
    read(sys.argv[1])
print(count() - before)
"""
IMPORTS = """
import sys
from fedstage.storage.tables import load_table
load_table(sys.argv[1])
print(len({"torch", "pandas"} & set(sys.modules)))
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted in /proc")
@pytest.mark.parametrize("code", [THREADS, IMPORTS], ids=["threads", "imports"])
def test_tables_leave_no_threads_and_import_neither_torch_nor_pandas(path, code):
    command = [sys.executable, "-c", code, str(path)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert ended.stdout == "0\n", ended.stderr
