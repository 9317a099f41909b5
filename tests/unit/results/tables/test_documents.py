import re
from types import SimpleNamespace

import pytest

from fedstage.results.tables import html, markdown
from fedstage.results.tables.columns import Column, text_table
from fedstage.results.tables.documents import write_document
from fedstage.results.tables.layout import Layout, TextColumn

OF = "Experiment `e` at scale `mini`: "


def write(folder, head, legend, lines, **changes):
    table = text_table(["Method"], lines, [Column("seconds", head, legend)])._replace(**changes)
    paths = {"markdown": folder / "t.md", "html": folder / "t.html"}
    described = SimpleNamespace(experiment="e", scale="mini", title="The title")
    write_document(described, "what `it` is of.", [table], **paths)
    return [path.read_text(encoding="utf-8") for path in paths.values()]


def test_keys_are_on_the_left_and_numbers_on_the_right(tmp_path):
    lines = [(["a|b<"], {"seconds": [1.0, 3.0]}), (["**c**"], {"seconds": []})]
    markdown, html = write(tmp_path, "Seconds", "of a **round**.", lines)
    assert markdown.splitlines() == [
        "# The title", "", f"{OF}what `it` is of.", "", "| Method | Seconds |", "| :--- | ---: |",
        "| a\\|b< | 2.00 ± 1.41 |", "| **c** | – |", "", "- **Seconds**: of a **round**.",
    ]  # fmt: skip
    assert '<td class="key">a|b&lt;</td><td>2.00 ± 1.41</td>' in html
    assert '<td class="key">c</td><td>–</td>' in html
    told = OF.replace("`e`", "<code>e</code>").replace("`mini`", "<code>mini</code>")
    text = f"<p>{told}what <code>it</code> is of.</p>"
    assert "\n".join(["<h2>The title</h2>", text, "<table>"]) in html
    assert "<ul>\n<li><b>Seconds</b>: of a <b>round</b>.</li>\n</ul>" in html
    padded, _ = write(tmp_path, "Seconds", "s.", lines, compact=None)
    assert "| Method   |     Seconds |" in padded


@pytest.mark.parametrize("writer", [markdown, html])
def test_no_part_of_a_document_lets_a_tag_pass(writer):
    text = "the <script>alert(1)</script> of `<b>`"
    layout = Layout([text], [(text,)], [TextColumn(text, [text], text)], [text])
    pages = [
        writer.page(text, [writer.heading(text), writer.paragraph(text), writer.items([text])]),
        writer.grid([text], [[text]], 1),
        markdown.compact_grid([text], [[text]], 1),
        markdown.render(layout, text, text),
    ]
    for page in pages:
        assert "&lt;script" in page
        assert not re.search("<script|<b>", page)
