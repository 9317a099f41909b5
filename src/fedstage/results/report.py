"""The report of an experiment: one page with tables, figures and the origin of each number."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path

import pandas as pd
from jinja2 import Environment, FileSystemLoader, select_autoescape
from markupsafe import Markup
from matplotlib.figure import Figure

from fedstage.results.documents import inline
from fedstage.results.labels import NOTHING, place_label, seconds_text
from fedstage.results.style import theme
from fedstage.results.table import Table
from fedstage.results.tidy import SEED, Tidy, cell_numbers, last_rounds, place_of


@dataclass(frozen=True)
class Section:
    """A section of the report: its figures by their captions, and tables, which may be `folded`."""

    title: str
    tables: Sequence[Table] = ()
    figures: Mapping[str, Figure] = field(default_factory=dict)
    folded: bool = False

    @property
    def anchor(self) -> str:
        """The name of its place on the page."""
        return re.sub(r"\W+", "-", self.title.lower())


def render_report(
    scores: Tidy,
    sections: Sequence[Section],
    *,
    about: Mapping[str, str],
    settings: Mapping[str, str],
    files: Mapping[tuple[str, ...], str],
) -> str:
    """Return the report as one page, which needs no network and no other file.

    Parameters
    ----------
    about : mapping
        What is said about the whole: how it was made, versions, what sharing saved.
    settings : mapping
        The settings that all runs share.
    files : mapping
        The path from the report to a run's settings, by its place on all axes and its seed.
    """
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=select_autoescape(["j2"])
    )
    environment.filters["inline"] = lambda text: Markup(inline(text))
    header = scores.header
    head = {
        "Experiment": f"`{header.target}`, {len(last_rounds(scores))} runs",
        "Made at": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "Source": "; ".join(scores.frame["source"].dropna().unique()) or "not recorded",
        "Machine": "; ".join(scores.frame["machine"].dropna().unique()) or "not recorded",
    }
    drawn = [
        {
            "title": section.title,
            "anchor": section.anchor,
            "folded": section.folded,
            "tables": section.tables,
            "figures": {name: _svg(figure) for name, figure in section.figures.items()},
        }
        for section in sections
    ]
    page = environment.get_template("report.html.j2")
    return page.render(
        header=header,
        about=head | dict(about),
        sections=drawn,
        origins=origin_tables(scores, files),
        settings=settings,
    )


def origin_tables(scores: Tidy, files: Mapping[tuple[str, ...], str]) -> dict[str, Table]:
    """Return, for each cell, its runs: score, settings and their file, source, machine, seconds."""
    header, last = scores.header, last_rounds(scores)
    tables = {}
    for number, runs in last.assign(_cell=cell_numbers(header, last)).groupby("_cell", sort=False):
        rows = runs.to_dict("records")
        linked = [
            f"[{row['settings']}]({files[place_of(map(row.get, scores.run))]})" for row in rows
        ]
        shown = pd.DataFrame(
            {
                "Seed": [str(row[SEED]) for row in rows],
                "Score": [f"{row[header.metric]:.2f}" for row in rows],
                "Round": [str(row["round"]) for row in rows],
                "Settings": linked,
                "Source": [str(row["source"] or NOTHING) for row in rows],
                "Machine": [str(row["machine"] or NOTHING) for row in rows],
                "Seconds": [seconds_text(float(row["seconds"] or "nan")) for row in rows],
            }
        )
        place = place_label(header.axes, header.cells[int(str(number))].axes, header)
        tables[place] = Table(place, shown, 1, runs)
    return tables


def _svg(figure: Figure) -> str:
    """Return a figure as an element of the page; its text stays text."""
    with theme():
        text = StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    svg = text.getvalue()
    return svg[svg.index("<svg") :]
