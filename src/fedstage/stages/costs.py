"""Stage `costs`: what runs cost in one tidy file, one row per run and stage.

Seconds are those that jobs recorded, without evaluation, and of no candidate that was not chosen.
Jobs that run at the same time slow one another down, and what methods share counts for each.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

import pandas as pd

from fedstage.errors import FedstageError
from fedstage.experiments.runs_file import ExperimentRun, Part, read_runs_file
from fedstage.plan.data_files import AnyRecipe
from fedstage.plan.stages import GRAPH, RECIPES, Job, jobs_of
from fedstage.plan.traffic import held_files
from fedstage.plan.training import SECURE
from fedstage.plan.training_folder import odds_files, owners, training_id
from fedstage.protocol.exchange import exchanges_logits
from fedstage.results.tidy import COST, COSTS, SEED, Tidy, typed, write_tidy
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.settings.recipes import LocalRecipe, Recipe
from fedstage.stages.phases import Moved, held_bytes, model_bytes, phases_of
from fedstage.stages.scores import header_of
from fedstage.storage.provenance import PARTS
from fedstage.storage.records import by_path, records_of

#: The stages that clients run, in one way or another.
_CLIENTS = {stage.name for stage in GRAPH if stage.private is not None}
_AGGREGATION = ("aggregation", *(stage.name for stage in SECURE))
_LOGITS = ("logits", "cached_labels", "selected_labels")
_TEACHING = ("distillation", "feature_training", "head_sharing")
#: Jobs of a round that tables and claims add up; `participant` is a single training.
_ROUND = {
    "training": ("local_training",),
    "aggregation": _AGGREGATION,
    "logits": _LOGITS,
    "distillation": _TEACHING,
    "added": (*_LOGITS, *_TEACHING),
    "round": ("local_training", *_AGGREGATION, *_LOGITS, *_TEACHING),
}
_DIGITS = 6

Row = dict[str, Any]


def costs(*, runs: Path, costs: Path) -> None:
    """Write the file of costs; bytes where the experiment has communication among its results."""
    experiment = read_runs_file(runs)
    header, rows = header_of(experiment), list[Row]()
    for run in experiment.runs:
        place = {axis: run.settings.get(axis) for axis in (*header.axes, SEED)}
        own = [*_seconds(run)]
        own += _bytes(run) if experiment.traffic else []
        rows += [{**place, **row} for row in own]
    frame = pd.DataFrame(rows).reindex(columns=[*header.axes, SEED, *COST, *COSTS])
    axes = {axis: typed([row[axis] for row in rows]) for axis in (*header.axes, SEED)}
    write_tidy(costs, Tidy(frame.assign(**axes), header))


# --- seconds --------------------------------------------------------------------------------------


def _seconds(run: ExperimentRun) -> Iterator[Row]:
    """Yield seconds by stage and side, and of the stages of a round together."""
    parts = run.candidates[run.which()].parts
    found = [(number, *job) for number, part in enumerate(parts) for job in _jobs(part)]
    jobs = pd.DataFrame(found, columns=["part", "stage", "side", "round", "seconds"])
    for (stage, side), own in jobs.groupby(["stage", "side"], sort=False):
        yield _row(str(stage), str(side), own)
    last = jobs[(jobs["part"] == len(parts) - 1) & (jobs["round"] > 0)]
    if last.empty:
        return
    alone = last[last["stage"] == "local_training"]
    yield _row("participant", "round", alone.assign(round=range(len(alone)))) | {"rounds": None}
    for name, stages in _ROUND.items():
        together = last[last["stage"].isin(stages)]
        if len(together):
            yield _row(name, "round", together)


def _row(stage: str, side: str, jobs: pd.DataFrame) -> Row:
    """Return a row of seconds; jobs record milliseconds, rounding removes errors of float sums."""
    sums = jobs.groupby(["part", "round"])["seconds"].sum()
    low, median, high = sums.quantile([0.25, 0.5, 0.75])
    numbers = {"seconds": sums.sum(), "median_s": median, "low_s": low, "high_s": high}
    return {
        "stage": stage,
        "side": side,
        "jobs": len(jobs),
        "rounds": sum(round_ > 0 for _, round_ in sums.index),
        **{name: round(float(value), _DIGITS) for name, value in numbers.items()},
    }


def _jobs(part: Part) -> Iterator[tuple[str, str, int, float]]:
    """Yield stage, side, round (0 outside of rounds) and seconds of each job of a part."""
    recipe = part.recipe
    if isinstance(recipe, Recipe):
        for job, seconds in read_times(Path(), recipe, part.length.rounds).items():
            yield job.stage, _side(recipe, job.stage, {}), job.round, seconds
        files = odds_files(recipe)
    else:
        files = held_files(recipe, part.length)
    for record in _behind(Path(), files):
        side = _side(recipe, record["stage"], record["options"])
        yield record["stage"], side, 0, float(record["compute_s"])


def _side(recipe: AnyRecipe, stage: str, options: Mapping[str, Any]) -> str:
    """Return who does a job in a place with these `options`: ``clients`` or the ``server``."""
    clients = stage in _CLIENTS
    if isinstance(recipe, LocalRecipe):
        clients = not (recipe.pooled or recipe.on_core)
    elif isinstance(recipe, Recipe) and stage == "logits":
        clients = exchanges_logits(recipe)
    elif isinstance(recipe, OneShotRecipe) and stage == "aggregator":
        clients = recipe.aggregator_training is not None
    elif stage == "client_logits":
        clients = options["images"] in ("validation", "aggregator")
    return "clients" if clients else "server"


def _behind(root: Path, files: Iterable[str]) -> list[dict[str, Any]]:
    """Return the records of the jobs that made files, and all files behind these, each once."""

    @cache
    def latest(identity: str) -> dict[str, dict[str, Any]]:
        records = records_of(root, identity)
        return {file: record for record in records for file in by_path(record["outputs"])}

    waiting, found = list(dict.fromkeys(files)), dict[str, dict[str, Any]]()
    while waiting:
        file = waiting.pop()
        folder, identity = PurePosixPath(file).parts[1:3]
        if folder in RECIPES and folder != "training" and file not in found:
            record = latest(identity).get(file)
            if record is None:
                raise _unrecorded(file)
            found |= dict.fromkeys(by_path(record["outputs"]), record)
            waiting += [path for path in by_path(record["inputs"]) if not path.endswith(".yaml")]
    return list({id(record): record for record in found.values()}.values())


# --- seconds of jobs of rounds --------------------------------------------------------------------


def read_times(root: Path, recipe: Recipe, rounds: int) -> dict[Job, float]:
    """Return the seconds of each job of a run's rounds, with `results` in the folder `root`.

    Raises
    ------
    FedstageError
        If a job has no record.
    """
    latest: dict[str, float] = {}
    for record in records_of(root, *map(training_id, reversed(owners(recipe)))):
        latest |= dict.fromkeys(by_path(record["outputs"]), float(record["compute_s"]))
        latest |= record.get(PARTS, {})
    times = {}
    for job in jobs_of(recipe, rounds):
        if job.file in latest:
            times[job] = latest[job.file]
        elif not _unread(job, rounds):
            raise _unrecorded(job.file)
    return times


def _unrecorded(file: str) -> FedstageError:
    return FedstageError(
        f"{file}: no record below results/logs has its seconds: the logs were deleted; delete the "
        "file to make it again"
    )


def _unread(job: Job, last: int) -> bool:
    """Whether no job reads a job's files, as for students but the main one in the last round."""
    return job.stage in ("distillation", "head_sharing") and job.round == last and job.group > 0


# --- bytes ----------------------------------------------------------------------------------------


def _bytes(run: ExperimentRun) -> Iterator[Row]:
    """Yield what travels in each phase, one model up and one down, and what prediction holds."""
    parts = run.candidates[run.which()].parts
    for phase in phases_of(parts):
        yield _travels(phase.name, "travel", phase.moved) | {"rounds": phase.rounds}
    unit = model_bytes(parts[-1])
    yield _travels("one model", "unit", Moved(unit, unit))
    yield {"stage": "prediction", "side": "memory", "memory_bytes": held_bytes(parts[-1])}


def _travels(stage: str, side: str, moved: Moved) -> Row:
    numbers = {"bytes_up": moved.up, "bytes_down": moved.down, "everyone": moved.everyone}
    return {"stage": stage, "side": side, **numbers}
