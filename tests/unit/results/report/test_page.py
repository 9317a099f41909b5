import re
import shutil
import subprocess
from html.parser import HTMLParser

import pytest

from fedstage.results.report.page import (
    Section,
    chart,
    facts,
    folded,
    preformatted,
    render_page,
    result_table,
)
from fedstage.results.tables.layout import Column, Layout

LAYOUT = Layout(
    ["Method"],
    [("FedAvg",), ("Fed<DF>",), ("Alone",)],
    [
        Column("Measured", ["9.50 ± 1.00", "10.25", "–"], places=[0, 1, None]),
        Column("Upload", ["1.2 MB", "37.5 kB", "0 B"]),
    ],
    [],
)
SPEC = {
    "data": {"values": [{"x": 1, "y": "</script><b>"}]},
    "mark": "point",
    "encoding": {"x": {"field": "x", "type": "quantitative"}, "y": {"field": "y"}},
}


class Parsed(HTMLParser):
    """What a page links to and loads, its anchors, and how its elements close."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors, self.loaded, self.open = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.links += [found["href"]] if tag == "a" else []
        self.anchors += [found["id"]] if "id" in found else []
        self.loaded += [found[key] for key in ("src",) if key in found]
        self.loaded += [found["href"]] if tag == "link" else []
        if tag not in ("meta", "link", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def page():
    cells = [folded(f"cell-{place}", "A <cell>", [preformatted(["<a>"])]) for place in (0, 1)]
    sections = [
        Section("table", "Table", [result_table(LAYOUT, "cell")]),
        Section("curves", "Curves", [chart(SPEC, "**What** it shows.")]),
        Section("runs", "Runs", cells),
    ]
    return render_page("A & B", [facts({"Commit": "`abc`"})], sections)


def test_the_page_needs_no_other_file(page):
    parsed = Parsed(page)
    assert parsed.loaded == []
    assert not re.search(r"@import|url\(", page.partition("</style>")[0])
    assert page.count("window.vegaEmbed=") == 1
    assert len(page.encode()) < 2e6
    assert parsed.open == []


def test_every_link_leads_to_a_place_on_the_page(page):
    parsed = Parsed(page)
    assert {link.removeprefix("#") for link in parsed.links} <= set(parsed.anchors)
    assert parsed.links[:3] == ["#table", "#curves", "#runs"]


def test_measured_cells_lead_to_their_runs(page):
    assert '<td><a href="#cell-0">9.50 ± 1.00</a></td>' in page
    assert "<td>–</td>" in page
    assert "<td>37.5 kB</td>" in page
    assert "Fed&lt;DF&gt;" in page


def test_data_cannot_end_a_script(page):
    assert "</script><b>" not in page
    assert r"\u003c/script>\u003cb>" in page


def in_browser(page, folder, script=""):
    """The document in a browser, after a script."""
    path = folder / "page.html"
    path.write_text(page.replace("</body>", f'<script type="module">{script}</script></body>'))
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    command += ["--virtual-time-budget=5000", f"file://{path}"]
    return subprocess.run(command, capture_output=True, text=True, timeout=300).stdout


def column(document):
    """The first column of the table, in its order."""
    return re.findall(r'<td class="key">([^<]*)</td>', document.partition("<script")[0])


@pytest.mark.skipif(not shutil.which("chromium"), reason="needs a browser")
def test_a_browser_sorts_by_a_head_and_draws_the_chart(page, tmp_path):
    click = "document.querySelectorAll('th.sorts')[{}].click();"
    once = in_browser(page, tmp_path, click.format(1))
    assert column(once) == ["FedAvg", "Fed&lt;DF&gt;", "Alone"]
    assert re.search(r'<svg[^>]*class="marks"', once.partition("<script")[0])
    twice = in_browser(page, tmp_path, click.format(1) * 2)
    assert column(twice) == ["Fed&lt;DF&gt;", "FedAvg", "Alone"]  # nothing stays last
    by_bytes = in_browser(page, tmp_path, click.format(2))
    assert column(by_bytes) == ["Alone", "Fed&lt;DF&gt;", "FedAvg"]
