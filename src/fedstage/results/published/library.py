"""The published numbers beside every experiment's runs, checked when the Snakefile is parsed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from fedstage.errors import FedstageError
from fedstage.plan.runs import Run
from fedstage.results.published.matching import counterparts
from fedstage.results.published.rows import Paper, Row, check_papers, load_rows
from fedstage.results.published.scale import measured_at, name_source, published_at
from fedstage.settings.experiments import Experiment
from fedstage.settings.published import Published
from fedstage.storage.yaml_files import load_yaml

#: The parts of an experiment that may have a published counterpart.
Place = Literal["table", "communication"]


@dataclass(frozen=True)
class PublishedTable:
    """What is published of an experiment's table.

    Attributes
    ----------
    source : str
        Where: ``FedSDD, Table 2``.
    notes : list of str
        At which scales was measured, here and there.
    numbers : list of dict or None
        Of each run `value`, `std` and `seeds`; None where the paper has nothing.
    """

    source: str
    notes: list[str]
    numbers: list[dict[str, Any] | None]


def find_published(
    experiments: Mapping[str, Experiment],
    runs: Mapping[tuple[str, str], Sequence[Run]],
    folder: Path,
    place: Place = "table",
) -> dict[tuple[str, str], PublishedTable]:
    """Return the published counterpart of each experiment and scale that names one.

    Parameters
    ----------
    place : str
        The part of an experiment that names it.

    Raises
    ------
    FedstageError
        If a paper or table is unknown, or a cell names no row or several.
    """
    named = {name: getattr(one, place).published for name, one in experiments.items()}
    wanted = {name: published for name, published in named.items() if published is not None}
    if not wanted:
        return {}
    file = folder / "papers.yaml"
    papers = check_papers(load_yaml(file), str(file))
    for name, published in wanted.items():
        _check_paper(f"{name}: {place}", published, papers)
    rows = {one.paper: load_rows(folder / f"{one.paper}.csv") for one in wanted.values()}
    for name, published in wanted.items():
        every = [run for key in runs for run in runs[key] if key[0] == name]
        _check_axes(f"{name}: {place}", published, every)
    return {
        (name, scale): _beside(name, scale, place, wanted[name], papers, resolved, rows)
        for (name, scale), resolved in runs.items()
        if name in wanted
    }


def _check_paper(where: str, published: Published, papers: Iterable[str]) -> None:
    if published.paper not in papers:
        known = ", ".join(papers)
        raise FedstageError(f"{where}.published.paper = {published.paper!r}: use one of {known}")


def _check_axes(where: str, published: Published, runs: Iterable[Run]) -> None:
    axes = dict.fromkeys(axis for run in runs for axis in run.axes if axis != "seed")
    places = [("axes", axis) for axis in published.axes]
    places += [("match", axis) for axis in published.match]
    places += [("cells", axis) for cell in published.cells for axis in cell.at]
    for key, axis in places:
        if axis not in axes:
            known = ", ".join(axes)
            raise FedstageError(f"{where}.published.{key}: {axis!r}: must be one of {known}")


def _beside(
    name: str,
    scale: str,
    place: Place,
    published: Published,
    papers: Mapping[str, Paper],
    runs: Sequence[Run],
    rows: Mapping[str, Sequence[Row]],
) -> PublishedTable:
    points = [run.axes for run in runs]
    found = counterparts(f"{name}/{scale}: {place}", published, points, rows[published.paper])
    paper = papers[published.paper]
    source = name_source(paper, published)
    notes = [measured_at(scale, runs), published_at(source, paper, found)]
    return PublishedTable(source, notes, [_number(row) for row in found])


def _number(row: Row | None) -> dict[str, Any] | None:
    return None if row is None else {"value": row.value, "std": row.std, "seeds": row.seeds}
