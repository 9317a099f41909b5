"""The published numbers of every experiment's runs, checked when the Snakefile is parsed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from fedstage.errors import FedstageError
from fedstage.plan.runs import Run
from fedstage.results.published.matching import SEED, counterparts
from fedstage.results.published.rows import Paper, Row, load_papers, load_rows
from fedstage.results.published.scale import (
    PAPER,
    has_data_of,
    has_models_of,
    measured_at,
    name_source,
    other_setting,
    published_at,
)
from fedstage.settings.experiments import Experiment
from fedstage.settings.scores import Published

#: The parts of an experiment that may have a published counterpart.
Place = Literal["table", "communication"]


@dataclass(frozen=True)
class PublishedTable:
    """The published counterpart of an experiment's table."""

    source: str  # ``FedSDD, Table 2``
    notes: list[str]  # the scales of the measured and of the published numbers
    numbers: list[dict[str, Any] | None]  # `value`, `std` and `seeds` of each run, if any
    # Whether both are shown side by side: the data are the published ones, and for communication,
    # which depends on the size of models, the models are, too.
    comparable: bool


def find_published(
    experiments: Mapping[str, Experiment],
    runs: Mapping[tuple[str, str], Sequence[Run]],
    folder: Path,
    place: Place = "table",
) -> dict[tuple[str, str], PublishedTable]:
    """Return the published counterpart of each experiment and scale that names one in `place`.

    Raises
    ------
    FedstageError
        If a paper or table is unknown, or a cell names no row or several.
    """
    parts = {name: getattr(experiment, place).published for name, experiment in experiments.items()}
    named = {name: published for name, published in parts.items() if published is not None}
    if not named:
        return {}
    papers = load_papers(folder)
    for name, published in named.items():
        if published.paper not in papers:
            raise FedstageError(
                f"{name}: {place}.published.paper = {published.paper!r}: "
                f"use one of {', '.join(papers)}"
            )
    rows = {published.paper: load_rows(folder / published.paper) for published in named.values()}
    for name, published in named.items():
        every = [run for key in runs for run in runs[key] if key[0] == name]
        _check_axes(f"{name}: {place}", published, every)
    return {
        (name, scale): _counterpart(
            f"{name}/{scale}",
            place,
            scale,
            named[name],
            papers[named[name].paper],
            resolved,
            rows[named[name].paper],
            runs.get((name, PAPER), ()),
        )
        for (name, scale), resolved in runs.items()
        if name in named
    }


def _check_axes(where: str, published: Published, runs: Iterable[Run]) -> None:
    axes = dict.fromkeys(axis for run in runs for axis in run.axes if axis != SEED)
    places = [("axes", axis) for axis in published.axes]
    places += [("match", axis) for axis in published.match]
    for key, axis in places:
        if axis not in axes:
            known = ", ".join(axes)
            raise FedstageError(f"{where}.published.{key}: {axis!r}: must be one of {known}")


def _counterpart(
    where: str,
    place: Place,
    scale: str,
    published: Published,
    paper: Paper,
    runs: Sequence[Run],
    rows: Sequence[Row],
    as_published: Sequence[Run],
) -> PublishedTable:
    found = counterparts(f"{where}: {place}", published, [run.axes for run in runs], rows)
    source = name_source(paper, published)
    notes = [measured_at(scale, runs), published_at(source, paper, found)]
    numbers = [
        None if row is None else {"value": row.value, "std": row.std, "seeds": row.seeds}
        for row in found
    ]
    of_models = place == "communication"
    same = has_data_of(runs, found, as_published) and (
        not of_models or has_models_of(runs, found, as_published)
    )
    if same and scale != PAPER:
        notes.append(other_setting(scale, "data and models" if of_models else "data"))
    comparable = same or scale == PAPER
    return PublishedTable(source, notes, numbers, comparable)
