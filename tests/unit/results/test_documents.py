"""Tables as Markdown, CSV, HTML, LaTeX and Parquet: cells stay in their place and do no harm."""

from html.parser import HTMLParser

import pandas as pd
import pytest

from fedstage.errors import FedstageError
from fedstage.results.documents import WRITERS, harmless, write_tables
from fedstage.results.table import BEST, STAR, Table

NASTY = ["a|b", "<b>x</b>", "50 % & $5_a", "=1+1", "two\nlines", "&amp; {\\x}", "plain"]


@pytest.fixture
def table():
    shown = pd.DataFrame({"Method": NASTY, "Top-1 (%)": ["1.00 ± 0.10"] * len(NASTY)})
    exact = pd.DataFrame({"method": NASTY, "mean": [1.0] * len(NASTY)})
    marks = {(0, 1): BEST, (1, 1): STAR}
    return Table("A <title>", shown, 1, exact, marks, ["Above."], ["**x**: `y` < z"])


@pytest.mark.parametrize("suffix", sorted(WRITERS))
def test_each_suffix_is_written(table, suffix, tmp_path):
    write_tables(tmp_path / f"t{suffix}", [table])
    assert (tmp_path / f"t{suffix}").stat().st_size


def test_other_suffixes_are_refused(table, tmp_path):
    with pytest.raises(FedstageError, match=r"use \.md"):
        write_tables(tmp_path / "t.xlsx", [table])


def test_markdown_has_one_line_a_row(table):
    lines = [line for line in WRITERS[".md"]([table]).splitlines() if line.startswith("|")]
    assert len(lines) == 2 + len(NASTY)
    assert "**1.00 ± 0.10**" in lines[2]
    assert "1.00 ± 0.10 *" in lines[3]
    assert "<b>" not in "".join(lines)
    assert len({line.count("|") - line.count("\\|") for line in lines}) == 1


def test_html_has_the_texts_and_nothing_else(table):
    found = []
    parser = HTMLParser()
    parser.handle_data = lambda data: found.append(data)
    parser.feed(WRITERS[".html"]([table]))
    assert "<b>x</b>" in "".join(found)


def test_latex_escapes_every_special_character(table):
    text = WRITERS[".tex"]([table])
    assert r"50 \% \& \$5\_a" in text
    assert r"\{\textbackslash{}x\}" in text
    assert r"\textbf{1.00 $\pm$ 0.10}" in text
    assert r"1.00 $\pm$ 0.10$^*$" in text


def test_csv_keeps_numbers_exact_and_formulas_harmless(table, tmp_path):
    write_tables(tmp_path / "t.csv", [table])
    found = pd.read_csv(tmp_path / "t.csv")
    assert found["method"].tolist()[3] == "'=1+1"
    assert harmless("-1.5") == "-1.5"
    write_tables(tmp_path / "t.parquet", [table])
    pd.testing.assert_frame_equal(
        pd.read_parquet(tmp_path / "t.parquet"), table.exact, check_dtype=False
    )
