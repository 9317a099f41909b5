import csv
from io import StringIO

import pandas as pd
import pyarrow as pa
import pytest

from fedstage.results.tables.plain import (
    frame_as_csv,
    write_csv,
    write_html,
    write_markdown,
    write_parquet,
)
from fedstage.storage.tables import load_table


def test_markdown_has_keys_on_the_left_numbers_on_the_right_and_what_they_say(tmp_path):
    rows = [{"method": "a|b", "Seconds": "1.5"}, {"method": "c", "Seconds": "–"}]
    legend = {"Seconds": "of a round.", "Unused": "is not a column."}
    write_markdown(tmp_path / "t.md", "The title", "What it is of.", rows, legend)
    assert (tmp_path / "t.md").read_text(encoding="utf-8").splitlines() == [
        "# The title",
        "",
        "What it is of.",
        "",
        "| method | Seconds |",
        "| :--- | ---: |",
        "| a\\|b | 1.5 |",
        "| c | – |",
        "",
        "- **Seconds**: of a round.",
    ]


def test_csv_has_exact_numbers_and_nothing_where_there_is_nothing(tmp_path):
    rows = [{"method": "a, b", "x": 0.1 + 0.2, "y": None}, {"method": "c", "x": 1, "y": True}]
    write_csv(tmp_path / "t.csv", rows)
    assert (tmp_path / "t.csv").read_bytes() == (
        b'method,x,y\n"a, b",0.30000000000000004,\nc,1,True\n'
    )


#: Names as a method's label, a class or a client may have: their cells in CSV and in Markdown.
HOSTILE = [
    ("=1+1", "'=1+1", "=1+1"),
    ("+a", "'+a", "+a"),
    ("-a", "'-a", "-a"),
    ("@SUM(A1)", "'@SUM(A1)", "@SUM(A1)"),
    ("\tx", "'\tx", "\tx"),
    ("-1.5", "-1.5", "-1.5"),
    ("+2", "+2", "+2"),
    ("-inf", "-inf", "-inf"),
    ("a=b", "a=b", "a=b"),
    ("a\nb", "a\nb", "a b"),
    ("a\r\nb\u2028c", "a\r\nb\u2028c", "a b c"),
    ("$a$", "$a$", "\\$a\\$"),
]


@pytest.mark.parametrize(("name", "in_csv", "_"), HOSTILE)
def test_no_cell_of_csv_is_a_formula_and_numbers_stay(tmp_path, name, in_csv, _):
    write_csv(tmp_path / "t.csv", [{name: -1.5, "name": name}])
    frame = pd.DataFrame({name: [-1.5], "name": [name]})
    for text in ((tmp_path / "t.csv").read_bytes().decode(), frame_as_csv(frame)):
        assert list(csv.reader(StringIO(text, newline=""))) == [
            [in_csv, "name"],
            ["-1.5", in_csv],
        ]


def test_frames_as_csv_have_exact_numbers():
    frame = pd.DataFrame(
        {"a": pd.Series([0.1], dtype="float32"), "b": [None], "c": [True], "d": [0.1 + 0.2]}
    )
    assert frame_as_csv(frame) == frame.to_csv(index=False)


@pytest.mark.parametrize(("name", "_", "in_markdown"), HOSTILE)
def test_no_name_breaks_a_table_of_markdown(tmp_path, name, _, in_markdown):
    write_markdown(tmp_path / "t.md", f"T {name}", "S.", [{name: name}], {name: f"is {name}."})
    title, _, _, _, head, _, row, _, *last = (tmp_path / "t.md").read_text("utf-8").split("\n")
    assert (head, row) == (f"| {in_markdown} |",) * 2
    assert "\n" not in title
    assert len(last) == 2


def test_csv_without_rows_has_its_columns(tmp_path):
    write_csv(tmp_path / "t.csv", [], ["method", "x"])
    assert (tmp_path / "t.csv").read_bytes() == b"method,x\n"


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


def test_html_has_the_same_texts_without_marks_and_keys_on_the_left(tmp_path):
    rows = [{"Method": "a<b", "Phase": "**total**", "Seconds": "1.5"}]
    legend = {"Seconds": "of a **round**.", "Unused": "is not a column."}
    write_html(tmp_path / "t.html", rows, legend, title="The title", source="Of `e`.", left=2)
    text = (tmp_path / "t.html").read_text(encoding="utf-8")
    assert '<td class="key">a&lt;b</td><td class="key">total</td><td>1.5</td>' in text
    assert "<h2>The title</h2>\n<p>Of <code>e</code>.</p>\n<table>" in text
    assert "<ul>\n<li><b>Seconds</b>: of a <b>round</b>.</li>\n</ul>" in text
    assert "Unused" not in text
