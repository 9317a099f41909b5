import pytest

from fedstage.results.tables.plain import (
    mean_and_deviation,
    with_deviation,
    write_csv,
    write_markdown,
)


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


def test_a_single_value_has_no_deviation():
    assert mean_and_deviation([2.0]) == (2.0, None)
    assert mean_and_deviation([1.0, 3.0]) == (2.0, pytest.approx(2**0.5))
    assert with_deviation([2.0], 1) == "2.0"
    assert with_deviation([1.0, 3.0], 2) == "2.00 ± 1.41"
