"""Stage `scores`: all scores of an experiment's runs in one tidy file, one row per value.

The header describes the experiment; scores, axes and digests of settings follow from the runs.
The source, machine and seconds of a run follow from the records next to the logs.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from fedstage.algorithm.measures.forgetting import RETENTION_SCHEMA
from fedstage.algorithm.measures.metrics import METRICS_SCHEMA
from fedstage.errors import FedstageError
from fedstage.experiments.runs_file import ExperimentRun, ExperimentRuns, read_runs_file
from fedstage.plan.runs import folders_of
from fedstage.protocol.digests import canonical, digest
from fedstage.results.tidy import (
    ORIGIN,
    SEED,
    WHAT,
    CellHeader,
    Header,
    Number,
    Tidy,
    typed,
    write_tidy,
)
from fedstage.settings.cells import show_point
from fedstage.stages.measured import OF_RUNS, measure, read_metrics
from fedstage.stages.phases import bytes_until, phases_of
from fedstage.storage.records import find_artefact, records_of
from fedstage.storage.tables import load_table
from fedstage.storage.tensors import load_tensors

MEASURES = [name for name in METRICS_SCHEMA.names if name not in WHAT]
#: What the record of a distillation says in percent of the public samples.
AGREEMENT = ("agreement_before", "agreement", "changed")
#: The samples that forgetting is measured on.
PARTICIPANTS = "participants"

Row = dict[str, Any]


def scores(*, runs: Path, scores: Path) -> None:
    """Write the file of scores."""
    experiment, known = read_runs_file(runs), dict[str, float]()
    measured = [measure(run, experiment) for run in experiment.runs]
    origins = [_origin(run, known) for run in experiment.runs]
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
    more: Sequence[Sequence[Row]] = (),
) -> Tidy:
    """Return the scores of runs, from the frames of `measure`, their origins and further rows."""
    header = header_of(experiment)
    rows: list[Row] = []
    for i, run in enumerate(experiment.runs):
        place = {axis: run.settings.get(axis) for axis in (*header.axes, SEED)}
        about = {"settings": settings_digest(run), **origins[i]}
        own = [*_scores(measured[i]), *(more[i] if more else ())]
        rows += [{**row, **place, **about} for row in own]
    columns = [*header.axes, SEED, *(name for name in WHAT if name not in header.axes), "value"]
    columns += [name for name in ("client", "label") if any(name in row for row in rows)]
    frame = pd.DataFrame(rows).reindex(columns=[*columns, *ORIGIN])
    axes = {axis: typed([row[axis] for row in rows]) for axis in (*header.axes, SEED)}
    return Tidy(frame.assign(**axes), header)


def _scores(measured: pd.DataFrame) -> Iterator[Row]:
    names = [*MEASURES, *(name for name in OF_RUNS if name in measured)]
    for row in measured.to_dict("records"):
        about = {name: row[name] for name in ("evaluated", "role", "round")}
        for name in names:
            if not pd.isna(row[name]):
                yield {**about, "measure": name, "value": float(row[name])}


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
        for name in ("samples", "accuracy"):
            if row[name] is not None:
                rows.append({**about, "measure": f"own_{name}", "value": float(row[name])})
    return rows


def _moved(run: ExperimentRun, experiment: ExperimentRuns) -> Iterator[Row]:
    """Yield the bytes of the mean client, and all parameters that were sent, by round."""
    parts = run.candidates[run.which()].parts
    until = bytes_until(phases_of(parts), parts)
    for round_ in read_metrics(run.metrics)["round"].astype(int):
        about = {"evaluated": "traffic", "role": run.length.role, "round": round_}
        yield {**about, "measure": "bytes", "value": float(until[round_].both)}
        yield {**about, "measure": "params", "value": float(until[round_].params)}


def _agreed(run: ExperimentRun, measured: pd.DataFrame) -> Iterator[Row]:
    """Yield how often the main student predicts as its teacher, before and after its distillation.

    In percent, in evaluated rounds; nothing without records.
    """
    recipe = run.candidates[run.which()].parts[-1].recipe
    ids = (folder.rpartition("/")[2] for folder in folders_of(recipe))
    told = {
        row["round"]: row
        for record in records_of(Path(), *ids)
        for row in record.get("distilled", ())
        if not row.get("group")
    }
    for row in measured.to_dict("records"):
        about = {"evaluated": "student", "role": row["role"], "round": row["round"]}
        for name, value in told.get(row["round"], {}).items():
            if name in AGREEMENT:
                yield {**about, "measure": name, "value": float(value)}


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
        for name, value in row.items():
            if name != "round" and value is not None:
                yield {**about, "round": row["round"], "measure": name, "value": float(value)}
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
        shared = overlap(own, learnt)
        if shared is not None:
            yield {**about, "measure": f"overlap with {other.settings['method']}", "value": shared}


def overlap(learnt: torch.Tensor, other: torch.Tensor) -> float | None:
    """Return |G & G'| / |G | G'| in percent for what two methods have learnt, bool [n].

    None if neither has learnt anything.
    """
    union = int((learnt | other).sum())
    return 100 * int((learnt & other).sum()) / union if union else None


def _origin(run: ExperimentRun, known: dict[str, float]) -> Row:
    """Return commit or version, machine and seconds of a run; nothing without records."""
    try:
        record = find_artefact(Path() / run.metrics).job
        seconds = spent(run, known)
    except FedstageError:  # the logs may have been deleted; scores do not depend on them
        return dict.fromkeys(("source", "machine", "seconds"))
    return {
        "source": record.get("commit") or f"fedstage {record['versions'].get('fedstage')}",
        "machine": _machine(record.get("machine", {})),
        "seconds": round(seconds, 3),
    }


def spent(run: ExperimentRun, known: dict[str, float]) -> float:
    """Return the seconds of all jobs of a run's recipes.

    `known` caches the seconds of each recipe by its id, and is extended by missing ones.
    """
    parts = run.candidates[run.which()].parts
    paths = (path for part in parts for path in folders_of(part.recipe))
    ids = dict.fromkeys(path.rpartition("/")[2] for path in paths)
    for name in ids:
        if name not in known:
            known[name] = sum(float(job["compute_s"]) for job in records_of(Path(), name))
    return sum(known[name] for name in ids)


def _machine(machine: Mapping[str, Any]) -> str:
    """Write a machine as a record has it: ``AMD EPYC, 2 cores, no GPU``."""
    if not machine:
        return "not recorded"
    gpu = machine.get("gpu") or "no GPU used"
    return f"{machine.get('processor', 'unknown')}, {machine.get('cores', '?')} cores, {gpu}"


def settings_digest(run: ExperimentRun) -> str:
    """Return a digest of the settings of each candidate of a run, without defaults and seeds.

    The settings of a run that starts from another one include the other's, in place of the file of
    its model, whose name depends on the seed.
    """
    return digest(
        [
            [_without_seed(_without_start(part)) for part in canonical(candidate)["parts"]]
            for candidate in run.candidates
        ]
    )


def _without_start(part: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {
        kind: {key: value for key, value in settings.items() if key != "start"}
        for kind, settings in part.items()
    }


def _without_seed(content: Any) -> Any:
    if isinstance(content, list):
        return [_without_seed(part) for part in content]
    if isinstance(content, dict):
        return {key: _without_seed(part) for key, part in content.items() if key != SEED}
    return content


# --- the header -----------------------------------------------------------------------------------


def header_of(experiment: ExperimentRuns) -> Header:
    """Return what describes an experiment, from the description of its runs."""
    axes = dict.fromkeys(name for run in experiment.runs for name in run.settings if name != SEED)
    cells: dict[str, CellHeader] = {}
    for run in experiment.runs:
        place = {axis: run.settings.get(axis) for axis in axes}
        cells.setdefault(show_point(place), _cell(run, place, experiment))
    own = ("experiment", "scale", "title", "rows", "columns", "metric", "also", "over", "baseline",
           "bands", "labels", "styles", "reach", "regime", "published", "notes", "measured_at",
           "published_at")  # fmt: skip
    return Header(
        **{name: getattr(experiment, name) for name in own},
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
        published={
            name: Number(**number.model_dump()) for name, number in numbers.items() if number
        },
        memory_mib=run.memory_mib,
        params=run.published_params,
        ratio=run.published_ratio,
    )
