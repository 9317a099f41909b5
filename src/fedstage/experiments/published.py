"""Published numbers of every experiment's runs, which the Snakefile checks, and their scales."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from fedstage.errors import FedstageError
from fedstage.experiments.grid import check_known
from fedstage.experiments.published_rows import (
    Paper,
    Row,
    counterparts,
    describe_cell,
    load_papers,
    load_rows,
    without_seed,
)
from fedstage.plan.runs import Run
from fedstage.protocol.digests import canonical
from fedstage.settings.cells import as_text, show_point
from fedstage.settings.data import Data, ParquetData
from fedstage.settings.experiments import Experiment
from fedstage.settings.models import Model
from fedstage.settings.recipes import Recipe
from fedstage.settings.scores import Published

# --- scales ---------------------------------------------------------------------------------------

#: Settings of a published row that may differ from the paper's scale.
_OF_SCALE = ("rounds", "local_epochs", "distill_steps", "active", "clients")


#: The scale of an experiment that is the paper's.
PAPER = "paper"


def has_published_parts(
    runs: Sequence[Run], rows: Sequence[Row | None], as_published: Sequence[Run], of_models: bool
) -> bool:
    """Whether runs have the published data, even if other settings are smaller or different.

    These are the data of the same experiment at the scale `paper`, or, for an experiment without
    this scale, the data named by the published `rows` of its runs. If `of_models`, likewise models.
    """
    published = {part for run in as_published for part in _parts(run, of_models)}
    if published:
        return {part for run in runs for part in _parts(run, of_models)} <= published
    pairs = [(run, row) for run, row in zip(runs, rows, strict=True) if row is not None]
    parts = [(row.keys, *part) for run, row in pairs for part in _parts(run, of_models)]
    return all(keys.get(column) == name for keys, column, name, _ in parts)


def _parts(run: Run, of_models: bool) -> set[tuple[str, str, Model | None]]:
    """Return the data of a run, and the architectures of its clients and server, by columns."""
    models = (run.recipe.model, *run.recipe.architectures) if of_models else ()
    named = {("model", model.name, model) for model in models}
    return {("dataset", data_name(run.recipe.data), None), *named}


def data_name(data: Data) -> str:
    """Return the name of a data set; for Parquet files, the name of their folder."""
    return data.folder if isinstance(data, ParquetData) else data.name


def name_source(paper: Paper, published: Published) -> str:
    """Name a paper's table: ``FedSDD, Table 2``."""
    place = re.sub(
        r"^(table|figure)(\d+)", lambda match: f"{match[1].title()} {match[2]}", published.table
    )
    return f"{paper.label}, {place.replace('_', ' ')}"


def measured_at(scale: str, runs: Sequence[Run]) -> str:
    """Name the data, models, lengths and seeds of an experiment's numbers."""
    recipes = [tried.recipe for run in runs for tried in run.candidates or (run,)]
    parts = [
        _listed(_show_data(recipe.data) for recipe in recipes),
        _listed(recipe.model.name for recipe in recipes),
        _count(_listed(run.length.rounds for run in runs), "round"),
        *_participation([recipe for recipe in recipes if isinstance(recipe, Recipe)]),
        _count(str(len({recipe.seed for recipe in recipes})), "seed"),
    ]
    return f"Measured at scale `{scale}`: {', '.join(parts)}."


def published_at(source: str, paper: Paper, rows: Iterable[Row | None]) -> str:
    """Name the data, models, lengths and seeds of the published numbers of a table."""
    found = [row for row in rows if row is not None]
    seeds = _listed(row.seeds for row in found if row.seeds)
    names = [_of_rows("dataset", found), _of_rows("model", found)]
    parts = [*names, paper.scale, *_by_row(found), _count(seeds, "seed") if seeds else ""]
    text = ", ".join(part for part in parts if part)
    return f"Published in {source}: {text}. {paper.title}."


def _by_row(rows: Sequence[Row]) -> list[str]:
    """Name the settings of scale that single rows have."""
    found = {key: _of_rows(key, rows) for key in _OF_SCALE}
    settings = [f"{key} = {values}" for key, values in found.items() if values]
    return [f"by row {'; '.join(settings)}"] if settings else []


def _of_rows(key: str, rows: Iterable[Row]) -> str:
    return _listed(row.keys[key] for row in rows if key in row.keys)


def _participation(recipes: Sequence[Recipe]) -> list[str]:
    """Return the lengths of local training and numbers of participants, of federated recipes."""
    if not recipes:
        return []
    lengths = [
        _count(str(recipe.client.steps), "local step")
        if recipe.client.epochs is None
        else _count(str(recipe.client.epochs), "local epoch")
        for recipe in recipes
    ]
    participants = _listed(recipe.participants for recipe in recipes)
    clients = _listed(recipe.clients for recipe in recipes)
    return [f"{_listed(lengths)} a round", f"{participants} of {clients} clients a round"]


def _show_data(data: Data) -> str:
    settings = {key: value for key, value in canonical(data).items() if key != "name"}
    inside = ", ".join(f"{key} {value}" for key, value in settings.items())
    return f"{data.name} ({inside})" if inside else data.name


def _listed(values: Iterable[Any]) -> str:
    """Write each value once: ``8, 14 and 20``."""
    *first, last = dict.fromkeys(map(str, values)) or [""]
    return f"{', '.join(first)} and {last}" if first else last


def _count(numbers: str, noun: str) -> str:
    return f"{numbers} {noun}" if numbers == "1" else f"{numbers} {noun}s"


# --- numbers of experiments -----------------------------------------------------------------------

#: The parts of an experiment that may have a published counterpart.
Place = Literal["table", "communication"]


@dataclass(frozen=True)
class PublishedTable:
    """The published counterpart of an experiment's table."""

    source: str  # ``FedSDD, Table 2``
    measured_at: str  # the scales of the measured and of the published numbers
    published_at: str
    numbers: list[dict[str, Any] | None]  # `value`, `std` and `seeds` of each run, if any
    others: list[dict[str, Any]]  # the same of each run by metric, of other metrics of claims
    # Whether both are shown side by side: the data are the published ones, and for communication,
    # which depends on the size of models, the models are, too.
    comparable: bool


def find_published(
    name: str,
    experiment: Experiment,
    scales: Mapping[str, Sequence[Run]],
    folder: Path,
    place: Place = "table",
    metrics: Collection[str | None] = (),
) -> dict[tuple[str, str], PublishedTable]:
    """Return the published counterpart of an experiment at each scale, if it names one in `place`.

    `scales` are its runs, and `metrics` are the metrics of claims on it.

    Raises
    ------
    FedstageError
        If a paper or table is unknown, a cell names several rows, or none of an experiment's own
        table names one.
    """
    published: Published | None = getattr(experiment, place).published
    if published is None:
        return {}
    where, papers = f"{name}: {place}.published", load_papers(folder)
    check_known(f"{where}.paper", published.paper, papers)
    every = [run for runs in scales.values() for run in runs]
    _check_axes(where, published, every)
    paper, rows = papers[published.paper], load_rows(folder / published.paper)
    printed = {row.metric for row in rows if row.table == published.table}

    def numbers(scale: str, metric: str) -> list[Row | None]:
        """Return the published row of each run at a scale."""
        return counterparts(
            f"{name}/{scale}: {place}",
            published.model_copy(update={"metric": metric}),
            [run.axes for run in scales[scale]],
            rows,
            [_known(run) for run in scales[scale]],
        )

    found, source = {}, name_source(paper, published)
    for scale, runs in scales.items():
        own = numbers(scale, published.metric)
        of_claims = {one: numbers(scale, one) for one in sorted(printed.intersection(metrics))}
        as_published = scales.get(PAPER, ())
        same = has_published_parts(runs, own, as_published, of_models=place == "communication")
        found[name, scale] = PublishedTable(
            source=source,
            measured_at=measured_at(scale, runs),
            published_at=published_at(source, paper, own),
            numbers=[_number(row) for row in own],
            others=[
                {metric: _number(of[i]) for metric, of in of_claims.items()}
                for i in range(len(runs))
            ],
            comparable=same or scale == PAPER,
        )
    if experiment.like is None and not any(any(one.numbers) for one in found.values()):
        columns = show_point(describe_cell(published, without_seed(every[0].axes)) or {})
        raise FedstageError(
            f"{where}: no cell has a row of {published.paper}, {published.table}; the first one "
            f"needs a row with {columns}"
        )
    return found


def _check_axes(where: str, published: Published, runs: Iterable[Run]) -> None:
    axes = dict.fromkeys(axis for run in runs for axis in without_seed(run.axes))
    for key in ("axes", "match"):
        for axis in getattr(published, key):
            if axis not in axes:
                known = ", ".join(axes)
                raise FedstageError(f"{where}.{key}: {axis!r}: must be one of {known}")


def _known(run: Run) -> dict[str, str]:
    """Return the standard columns of a run that its axes need not have."""
    recipe = run.recipe
    alpha = getattr(recipe.partition, "alpha", None)
    found = {"dataset": data_name(recipe.data), "model": recipe.model.name}
    return found if alpha is None else {**found, "partition_alpha": as_text(alpha)}


def _number(row: Row | None) -> dict[str, Any] | None:
    return None if row is None else {"value": row.value, "std": row.std, "seeds": row.seeds}
