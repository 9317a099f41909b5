import re
import shutil
import subprocess
from base64 import b64encode
from html import unescape
from html.parser import HTMLParser

import pytest

from fedstage.results.report.page import Section, facts, folded, preformatted, render_page
from fedstage.results.report.sections import result_sections
from fedstage.results.tables import html
from fedstage.results.tables.layout import Layout, TextColumn

LAYOUT = Layout(
    ["Method"],
    [("FedAvg",), ("Fed<DF>",), ("Alone",)],
    [
        TextColumn("Measured", ["9.50 ± 1.00", "10.25", "–"], places=[0, 1, None]),
        TextColumn("Upload", ["1.2 MB", "37.5 kB", "0 B"]),
    ],
    [],
)


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
        if tag not in ("meta", "link", "br", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def page():
    cells = [folded(f"cell-{place}", "A <cell>", [preformatted(["<a>"])]) for place in (0, 1)]
    sections = [
        Section("table", "Table", [html.result_grid(LAYOUT, "cell")]),
        Section("runs", "Runs", cells),
    ]
    return render_page("A & B", [facts({"Commit": "`abc`"})], sections)


def test_the_page_needs_no_other_file(page):
    parsed = Parsed(page)
    assert parsed.loaded == []
    assert not re.search(r"@import|url\(", page.partition("</style>")[0])
    assert len(page.encode()) < 2e4
    assert parsed.open == []


#: Clicks on the heads of two columns, and notes the order of the recipes after each.
CLICKS = """
const heads = document.querySelectorAll("th.sorts"), orders = [];
for (const number of [1, 1, 2]) {
  heads[number].click();
  orders.push([...document.querySelectorAll("tbody td.key")].map(cell => cell.textContent).join());
}
document.body.dataset.orders = orders.join(" | ");
"""


@pytest.mark.skipif(not shutil.which("chromium"), reason="needs a browser")
def test_a_browser_sorts_by_a_head(page, tmp_path):
    path = tmp_path / "page.html"
    before, body, after = page.rpartition("</body>")
    path.write_text(f'{before}<script type="module">{CLICKS}</script>{body}{after}')
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    command += ["--virtual-time-budget=20000", f"file://{path}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    (orders,) = re.findall(r'<body data-orders="([^"]*)"', done.stdout)
    assert unescape(orders).split(" | ") == [
        "FedAvg,Fed<DF>,Alone",  # by the mean
        "Fed<DF>,FedAvg,Alone",  # the other way; nothing stays last
        "Alone,Fed<DF>,FedAvg",  # by bytes
    ]


def test_other_results_are_sections_with_their_figures(tmp_path):
    folder = tmp_path / "results/costs/mine"
    folder.mkdir(parents=True)
    table = html.grid(["Method", "Bytes"], [["Fed<DF>", "1 kB"]], 1)
    (folder / "default.html").write_text(html.page("Mine", [html.paragraph("Seconds."), table]))
    drawn, caption = tmp_path / "default_costs.svg", tmp_path / "default_costs.txt"
    drawn.write_bytes(b"<svg/>")
    caption.write_text("Each point & its bar.\n")
    figures, section = result_sections([drawn, caption, folder / "default.html", drawn, caption])
    assert (figures.name, len(figures.parts)) == ("figures", 1)
    assert (section.name, section.title) == ("costs", "Costs")
    page = render_page("Mine", [], [section])
    assert b64encode(b"<svg/>").decode() in page
    assert page.count("Each point &amp; its bar.") == 2  # below the picture, and in its place
    assert f"<p>Seconds.</p>\n{table}" in page
    assert "<h2>Mine</h2>" not in page
    assert '<div class="wide lines"><p>Seconds.' in page  # cells do not break their text
    assert ".lines td { white-space: nowrap; }" in page
    assert Parsed(page).open == []
