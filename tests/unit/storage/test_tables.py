"""Tables with a digest for each row group."""

import subprocess
import sys
from itertools import product
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedstage.errors import FedstageError
from fedstage.storage.tables import load_foreign_table, load_table, save_table

SCHEMA = pa.schema([("round", pa.int32()), ("name", pa.string())])
ROWS = {"round": [1, 1, 2, 2, 3, 3, 4], "name": list("abcdefg")}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "results/a/rounds.parquet"
    save_table(path, ROWS, SCHEMA, rows_a_group=2)
    return path


def flip(path, place, bit=1):
    raw = bytearray(path.read_bytes())
    raw[place] ^= bit
    path.write_bytes(raw)


def test_all_rows_and_those_of_some_row_groups(path):
    assert pq.read_metadata(path).num_row_groups == 4
    assert load_table(path).to_pydict() == ROWS
    assert load_table(path, ["name"], {"round": 2}).to_pydict() == {"name": ["c", "d"]}
    assert load_table(path, where={"round": 9}).to_pydict() == {"round": [], "name": []}


def test_row_groups_that_are_not_read_are_not_verified(path):
    column = pq.read_metadata(path).row_group(2).column(0)
    flip(path, (column.dictionary_page_offset or column.data_page_offset) + 3)
    assert load_table(path, ["name"], {"round": 2}).to_pydict() == {"name": ["c", "d"]}
    for where in (None, {"round": 3}):
        with pytest.raises(FedstageError, match="row group 2 is not what its SHA-256 is of"):
            load_table(path, where=where)


def test_any_number_of_rows(tmp_path):
    for rows in (0, 1, 2, 3, 7):
        some = {name: values[:rows] for name, values in ROWS.items()}
        save_table(tmp_path / "a", some, SCHEMA, rows_a_group=3)
        assert load_table(tmp_path / "a").to_pydict() == some


def test_no_byte_may_change(path):
    for place, bit in product(range(len(path.read_bytes())), (0x01, 0x10, 0x80, 0xFF)):
        flip(path, place, bit)
        with pytest.raises(FedstageError, match="truncated or altered"):
            load_table(path)
        flip(path, place, bit)
    load_table(path)


def test_a_table_without_digests_is_refused_and_the_users_are_read(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table(ROWS, schema=SCHEMA), path)
    with pytest.raises(FedstageError, match="it has no SHA-256: altered, or an older version"):
        load_table(path)
    assert load_foreign_table(path, ["name"]).to_pydict() == {"name": ROWS["name"]}
    with pytest.raises(FedstageError, match="has no column 'x'"):
        load_foreign_table(path, ["x"])


def test_pandas_reads_it(path):
    import pandas as pd

    assert pd.read_parquet(path).to_dict("list") == ROWS


THREADS = """
import sys
from itertools import product
from pathlib import Path
import pyarrow as pa, pyarrow.parquet, pandas
from fedstage.storage import tables

def count():
    return len(list(Path("/proc/self/task").iterdir()))

before = count()
schema = pa.schema([("round", pa.int32()), ("name", pa.string())])
tables.save_table(sys.argv[1], {"round": [1, 2], "name": ["a", "b"]}, schema)
for read in (tables.load_table, tables.load_foreign_table, tables.load_frame):
    read(sys.argv[1])
print(count() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted in /proc")
def test_tables_are_read_and_written_without_threads_that_outlive_it(tmp_path):
    command = [sys.executable, "-c", THREADS, str(tmp_path / "results/a/rounds.parquet")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert ended.stdout == "0\n", ended.stderr
