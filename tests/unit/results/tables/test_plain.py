import pytest

from fedstage.results.tables.plain import write_html, write_markdown


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


#: Names as a method's label, a class or a client may have, and their cells.
HOSTILE = [
    ("=1+1", "=1+1"),
    ("a\nb", "a b"),
    ("a\r\nb\u2028c", "a b c"),
    ("$a$", "\\$a\\$"),
]


@pytest.mark.parametrize(("name", "in_markdown"), HOSTILE)
def test_no_name_breaks_a_table_of_markdown(tmp_path, name, in_markdown):
    write_markdown(tmp_path / "t.md", f"T {name}", "S.", [{name: name}], {name: f"is {name}."})
    title, _, _, _, head, _, row, _, *last = (tmp_path / "t.md").read_text("utf-8").split("\n")
    assert (head, row) == (f"| {in_markdown} |",) * 2
    assert "\n" not in title
    assert len(last) == 2


def test_html_has_the_same_texts_without_marks_and_keys_on_the_left(tmp_path):
    rows = [{"Method": "a<b", "Phase": "**total**", "Seconds": "1.5"}]
    legend = {"Seconds": "of a **round**.", "Unused": "is not a column."}
    write_html(tmp_path / "t.html", rows, legend, title="The title", source="Of `e`.", left=2)
    text = (tmp_path / "t.html").read_text(encoding="utf-8")
    assert '<td class="key">a&lt;b</td><td class="key">total</td><td>1.5</td>' in text
    assert "<h2>The title</h2>\n<p>Of <code>e</code>.</p>\n<table>" in text
    assert "<ul>\n<li><b>Seconds</b>: of a <b>round</b>.</li>\n</ul>" in text
    assert "Unused" not in text
