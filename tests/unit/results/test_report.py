"""The report: one page that needs nothing else."""

import re
from collections import defaultdict
from html.parser import HTMLParser

from fedstage.results.curves import draw_rounds
from fedstage.results.report import Section, render_report
from fedstage.results.table import score_table

_VOID = {"meta", "br", "img", "link", "use", "path"}


class Balanced(HTMLParser):
    """Refuses tags that are not closed in their order."""

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in _VOID:
            assert self.open.pop() == tag


def page_of(tidy, title="Tiny"):
    tidy = tidy._replace(header=tidy.header.model_copy(update={"title": title}))
    sections = [
        Section("Table", [score_table(tidy)]),
        Section("Accuracy over rounds", figures={"Accuracy over rounds": draw_rounds(tidy)}),
    ]
    about, files = {"Shared": "`x`"}, defaultdict(lambda: "../../a/recipe.yaml")
    return render_report(tidy, sections, about=about, settings={"rounds": "<2>"}, files=files)


def test_the_page_is_whole_and_needs_no_other_file(tidy):
    page = page_of(tidy)
    parser = Balanced()
    parser.feed(page)
    assert parser.open == []
    links = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert links
    assert {link for link in links if not link.startswith("#")} == {"../../a/recipe.yaml"}
    assert "@import" not in page


def test_every_cell_has_its_runs_and_every_figure_is_drawn_once(tidy):
    page = page_of(tidy)
    assert page.count("<details>") == len(tidy.header.cells)
    assert page.count("<svg") == 1
    assert "<summary>FedAvg, α = 0.1</summary>" in page
    assert "<b>71.00 ± 1.00</b>" in page


def test_texts_are_no_markup(tidy):
    page = page_of(tidy, title="<script>alert(1)</script>")
    assert "<script>alert" not in page
    assert "&lt;2&gt;" in page
