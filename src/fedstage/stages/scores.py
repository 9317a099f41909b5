"""Stage `scores`: all scores of an experiment's runs in one tidy file, one row per value.

The header describes the experiment; scores, axes and digests of settings follow from the runs.
The source, machine and seconds of a run follow from the records next to the logs.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from fedstage.algorithm.measures.forgetting import RETENTION_SCHEMA
from fedstage.algorithm.measures.metrics import METRICS_SCHEMA
from fedstage.errors import FedstageError
from fedstage.experiments.runs_file import ExperimentRun, ExperimentRuns, last_part, read_runs_file
from fedstage.plan.runs import folders_of
from fedstage.protocol.digests import canonical, digest
from fedstage.results.tidy import (
    ORIGIN,
    SEED,
    WHAT,
    CellHeader,
    Header,
    Tidy,
    typed,
    write_tidy,
)
from fedstage.settings.cells import show_point
from fedstage.stages.measured import OF_RUNS, measure, read_metrics
from fedstage.stages.phases import bytes_until
from fedstage.storage.records import find_artefact, records_of
from fedstage.storage.tables import load_table
from fedstage.storage.tensors import load_tensors

MEASURES = [name for name in METRICS_SCHEMA.names if name not in WHAT]
#: What the record of a distillation says in percent of the public samples.
AGREEMENT = ("agreement_before", "agreement", "changed")
#: The samples that forgetting is measured on.
PARTICIPANTS = "participants"

PARAMETER = 4  # bytes, of 32 bits

Row = dict[str, Any]


def scores(*, runs: Path, scores: Path) -> None:
    """Write the file of scores."""

    @cache
    def seconds_of(identity: str) -> float:
        """Return the seconds of all jobs of a recipe, which runs may share."""
        return sum(float(job["compute_s"]) for job in records_of(Path(), identity))

    experiment = read_runs_file(runs)
    measured = [measure(run, experiment) for run in experiment.runs]
    origins = [_origin(run, seconds_of) for run in experiment.runs]
    more = [
        [*further_rows(run, experiment), *_agreed(run, rounds)]
        for run, rounds in zip(experiment.runs, measured, strict=True)
    ]
    learnt = [_learnt(run) for run in experiment.runs if run.retention]
    if learnt:
        every = list(zip(experiment.runs, learnt, strict=True))
        more = [[*rows, *_forgotten(i, every)] for i, rows in enumerate(more)]
    write_tidy(scores, joined(experiment, measured, origins, more))


def joined(
    experiment: ExperimentRuns,
    measured: Sequence[pd.DataFrame],
    origins: Sequence[Mapping[str, Any]],
    more: Sequence[Sequence[Row]],
) -> Tidy:
    """Return the scores of runs, from the frames of `measure`, their origins and further rows."""
    header = header_of(experiment)
    rows: list[Row] = []
    for run, frame, origin, further in zip(experiment.runs, measured, origins, more, strict=True):
        place = {axis: run.settings.get(axis) for axis in (*header.axes, SEED)}
        about = {"settings": settings_digest(run), **origin}
        rows += [{**row, **place, **about} for row in (*_scores(frame), *further)]
    columns = [*header.axes, SEED, *(name for name in WHAT if name not in header.axes), "value"]
    columns += [name for name in ("client", "label") if any(name in row for row in rows)]
    frame = pd.DataFrame(rows).reindex(columns=[*columns, *ORIGIN])
    axes = {axis: typed([row[axis] for row in rows]) for axis in (*header.axes, SEED)}
    return Tidy(frame.assign(**axes), header)


def _measures(about: Row, values: Mapping[str, Any]) -> Iterator[Row]:
    """Yield a row for each measure whose value is known."""
    for name, value in values.items():
        if not pd.isna(value):
            yield {**about, "measure": name, "value": float(value)}


def _scores(measured: pd.DataFrame) -> Iterator[Row]:
    names = [*MEASURES, *(name for name in OF_RUNS if name in measured)]
    for row in measured.to_dict("records"):
        about = {name: row[name] for name in ("evaluated", "role", "round")}
        yield from _measures(about, {name: row[name] for name in names})


def further_rows(run: ExperimentRun, experiment: ExperimentRuns) -> list[Row]:
    """Return what results ask for in addition: bytes by round, scores of validation, clients."""
    rows: list[Row] = []
    if experiment.traffic:
        rows += _moved(run, experiment)
        if run.validation is not None and run.length.role != "validation":
            rows += _scores(read_metrics(run.validation[run.which()], experiment.metric))
    for row in load_table(run.clients[run.which()]).to_pylist() if run.clients else ():
        about = {"evaluated": "global_model", "role": row["of"], "round": run.length.rounds}
        about |= {name: row[name] for name in ("client", "label")}
        rows += _measures(about, {f"own_{name}": row[name] for name in ("samples", "accuracy")})
    return rows


def _moved(run: ExperimentRun, experiment: ExperimentRuns) -> Iterator[Row]:
    """Yield the bytes of the mean client, and all parameters that were sent, by round."""
    until = bytes_until(run.candidates[run.which()].parts)
    for round_ in read_metrics(run.metrics)["round"].astype(int):
        about = {"evaluated": "traffic", "role": run.length.role, "round": round_}
        moved = until[round_]
        sent = {"bytes": moved.up + moved.down, "params": moved.everyone / PARAMETER}
        yield from _measures(about, sent)


def _agreed(run: ExperimentRun, measured: pd.DataFrame) -> Iterator[Row]:
    """Yield how often the main student predicts as its teacher, before and after its distillation.

    In percent, in evaluated rounds; nothing without records.
    """
    ids = (folder.rpartition("/")[2] for folder in folders_of(last_part(run).recipe))
    told = {
        row["round"]: row
        for record in records_of(Path(), *ids)
        for row in record.get("distilled", ())
        if not row.get("group")
    }
    for row in measured.to_dict("records"):
        about = {"evaluated": "student", "role": row["role"], "round": row["round"]}
        known = told.get(row["round"], {})
        yield from _measures(about, {name: known[name] for name in known if name in AGREEMENT})


def _learnt(run: ExperimentRun) -> torch.Tensor:
    """Return about which test samples the last model is right and the first was not, bool [n]."""
    assert run.retention is not None, "asked for"
    right = load_tensors(Path(run.retention[run.which()]).with_suffix(".safetensors"))[0]
    return right["end"] & ~right["start"]


def _forgotten(number: int, every: Sequence[tuple[ExperimentRun, torch.Tensor]]) -> Iterator[Row]:
    """Yield the measures of forgetting of a run, and its overlaps with other methods."""
    run, own = every[number]
    assert run.retention is not None, "asked for"
    about = {"evaluated": "global_model", "role": PARTICIPANTS}
    rows = load_table(run.retention[run.which()], RETENTION_SCHEMA.names).to_pylist()
    for row in rows:
        values = {name: value for name, value in row.items() if name != "round"}
        yield from _measures({**about, "round": row["round"]}, values)
    about |= {"round": max(row["round"] for row in rows)}
    place = {axis: value for axis, value in run.settings.items() if axis != "method"}
    for other, learnt in every:
        if other is run or not place.items() <= other.settings.items():
            continue
        if len(own) != len(learnt):
            raise FedstageError(
                f"{show_point(run.settings)} and {show_point(other.settings)}: "
                f"{len(own)} and {len(learnt)} test samples: must be the same samples"
            )
        name = f"overlap with {other.settings['method']}"
        yield from _measures(about, {name: overlap(own, learnt)})


def overlap(learnt: torch.Tensor, other: torch.Tensor) -> float | None:
    """Return |G & G'| / |G | G'| in percent for what two methods have learnt, bool [n].

    None if neither has learnt anything.
    """
    union = int((learnt | other).sum())
    return 100 * int((learnt & other).sum()) / union if union else None


def _origin(run: ExperimentRun, seconds_of: Callable[[str], float]) -> Row:
    """Return commit or version, machine and seconds of a run; nothing without records."""
    parts = run.candidates[run.which()].parts
    paths = (path for part in parts for path in folders_of(part.recipe))
    identities = dict.fromkeys(path.rpartition("/")[2] for path in paths)
    try:
        record = find_artefact(Path(run.metrics)).job
        seconds = sum(map(seconds_of, identities))
    except FedstageError:  # the logs may have been deleted; scores do not depend on them
        return dict.fromkeys(("source", "machine", "seconds"))
    return {
        "source": record.get("commit") or f"fedstage {record['versions'].get('fedstage')}",
        "machine": _machine(record["machine"]),
        "seconds": round(seconds, 3),
    }


def _machine(machine: Mapping[str, Any]) -> str:
    """Write a machine as a record has it: ``AMD EPYC, 2 cores, no GPU used``."""
    return f"{machine['processor']}, {machine['cores']} cores, {machine['gpu'] or 'no GPU used'}"


def settings_digest(run: ExperimentRun) -> str:
    """Return a digest of the settings of each candidate of a run, without defaults and seeds.

    The settings of a run that starts from another one include the other's, in place of the file of
    its model, whose name depends on the seed.
    """
    candidates = [canonical(candidate)["parts"] for candidate in run.candidates]
    return digest([[_comparable(part) for part in parts] for parts in candidates])


def _comparable(part: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {
        kind: {key: value for key, value in settings.items() if key not in (SEED, "start")}
        for kind, settings in part.items()
    }


# --- the header -----------------------------------------------------------------------------------


def header_of(experiment: ExperimentRuns) -> Header:
    """Return what describes an experiment, from the description of its runs."""
    axes = dict.fromkeys(name for run in experiment.runs for name in run.settings if name != SEED)
    cells: dict[str, CellHeader] = {}
    for run in experiment.runs:
        place = {axis: run.settings.get(axis) for axis in axes}
        cells.setdefault(show_point(place), _cell(run, place, experiment))
    shared = Header.model_fields.keys() & ExperimentRuns.model_fields.keys()
    return Header(
        **{name: getattr(experiment, name) for name in shared},
        published_memory=experiment.memory,
        published_params=experiment.params,
        published_ratio=experiment.ratio,
        cells=list(cells.values()),
    )


def _cell(run: ExperimentRun, axes: Row, experiment: ExperimentRuns) -> CellHeader:
    numbers = {experiment.metric: run.published, **run.published_in}
    return CellHeader(
        axes=axes,
        training=run.length.training,
        role=run.length.role,
        published={name: number for name, number in numbers.items() if number},
        memory_mib=run.memory_mib,
        params=run.published_params,
        ratio=run.published_ratio,
    )
