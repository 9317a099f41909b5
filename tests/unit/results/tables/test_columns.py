import csv
from io import StringIO

import pandas as pd
import pyarrow as pa
import pytest

from fedstage.results.tables.columns import frame_as_csv, write_csv, write_parquet
from fedstage.storage.tables import load_table


def test_csv_has_exact_numbers_and_nothing_where_there_is_nothing(tmp_path):
    rows = [{"method": "a, b", "x": 0.1 + 0.2, "y": None}, {"method": "c", "x": 1, "y": True}]
    write_csv(tmp_path / "t.csv", rows)
    assert (tmp_path / "t.csv").read_bytes() == (
        b'method,x,y\n"a, b",0.30000000000000004,\nc,1,True\n'
    )


#: Names as a method's label, a class or a client may have, and their cells.
HOSTILE = [
    *((text, f"'{text}") for text in ("=1+1", "+a", "-a", "@SUM(A1)", "\tx")),
    *((text, text) for text in ("-1.5", "+2", "-inf", "a=b", "a\nb", "a\r\nb\u2028c", "$a$")),
]


@pytest.mark.parametrize(("name", "in_csv"), HOSTILE)
def test_no_cell_of_csv_is_a_formula_and_numbers_stay(tmp_path, name, in_csv):
    write_csv(tmp_path / "t.csv", [{name: -1.5, "name": name}])
    frame = pd.DataFrame({name: [-1.5], "name": [name]})
    for text in ((tmp_path / "t.csv").read_bytes().decode(), frame_as_csv(frame)):
        lines = list(csv.reader(StringIO(text, newline="")))
        assert lines == [[in_csv, "name"], ["-1.5", in_csv]]


def test_parquet_has_axes_of_mixed_types_as_texts_and_nulls(tmp_path):
    schema = pa.schema([("alpha", pa.string()), ("x", pa.float64())])
    rows = [
        {"alpha": 0.1, "x": 1.5, "unused": 1},
        {"alpha": "iid", "x": None},
        {"alpha": None, "x": 2},
    ]
    write_parquet(tmp_path / "t.parquet", rows, schema)
    read = load_table(tmp_path / "t.parquet")
    assert read.schema.names == ["alpha", "x"]
    assert read.to_pydict() == {"alpha": ["0.1", "iid", None], "x": [1.5, None, 2.0]}
