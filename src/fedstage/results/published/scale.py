"""At which scale numbers were measured: sentences that stand under a table with published ones."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from fedstage.plan.runs import Run
from fedstage.plan.sharing import canonical
from fedstage.results.published.rows import Paper, Row
from fedstage.settings.data import Data
from fedstage.settings.lines import Line
from fedstage.settings.published import Published

#: Keys of a published row's setting that say something else than the paper's scale.
_OF_SCALE = ("rounds", "local_epochs", "distill_steps", "active", "clients")


def name_source(paper: Paper, published: Published) -> str:
    """Name where numbers stand: ``FedSDD, Table 2``."""
    place = re.sub(
        r"^(table|figure)(\d+)", lambda match: f"{match[1].title()} {match[2]}", published.table
    )
    return f"{paper.label}, {place.replace('_', ' ')}"


def measured_at(scale: str, runs: Sequence[Run]) -> str:
    """Say of which data, models, lengths and seeds an experiment's numbers are."""
    lines = [one.line for run in runs for one in run.candidates or (run,)]
    parts = [
        _listed(_show_data(line.data) for line in lines),
        _listed(line.model.name for line in lines),
        _count(_listed(run.length.rounds for run in runs), "round"),
        *_participation([line for line in lines if isinstance(line, Line)]),
        _count(str(len({line.seed for line in lines})), "seed"),
    ]
    return f"Measured at scale `{scale}`: {', '.join(parts)}."


def published_at(source: str, paper: Paper, rows: Iterable[Row | None]) -> str:
    """Say of which data, models, lengths and seeds the published numbers of a table are."""
    found = [row for row in rows if row is not None]
    data = _listed(row.keys["dataset"] for row in found if "dataset" in row.keys)
    models = _listed(row.keys["model"] for row in found if "model" in row.keys)
    seeds = _listed(row.seeds for row in found if row.seeds)
    parts = [data, models, paper.scale, *_by_row(found), _count(seeds, "seed") if seeds else ""]
    text = ", ".join(part for part in parts if part)
    return f"Published in {source}: {text}. {paper.title}."


def _by_row(rows: Sequence[Row]) -> list[str]:
    """Name the settings of the scale that rows state for themselves."""
    stated = {key: [row.keys[key] for row in rows if key in row.keys] for key in _OF_SCALE}
    said = [f"{key} = {_listed(values)}" for key, values in stated.items() if values]
    return [f"by row {'; '.join(said)}"] if said else []


def _participation(lines: Sequence[Line]) -> list[str]:
    """Say how many clients take part, and how long they train in a round."""
    if not lines:
        return []
    lengths = [_local_length(line) for line in lines]
    participants = _listed(line.participants for line in lines)
    clients = _listed(line.clients for line in lines)
    return [f"{_listed(lengths)} a round", f"{participants} of {clients} clients a round"]


def _local_length(line: Line) -> str:
    if line.client.epochs is not None:
        return _count(str(line.client.epochs), "local epoch")
    return _count(str(line.client.steps), "local step")


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
