"""Stage `costs`: what runs cost in one tidy file, one row per run and stage.

Seconds are those that jobs recorded, without evaluation, and of no candidate that was not chosen.
Jobs that run at the same time slow one another down, and what methods share counts for each.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path, PurePosixPath
from statistics import quantiles
from typing import Any

import pandas as pd

from fedstage.errors import FedstageError
from fedstage.experiments.runs_file import ExperimentRun, Part, read_runs_file
from fedstage.plan.stages import RECIPES, Job, jobs_of
from fedstage.plan.traffic import held_files
from fedstage.plan.training import SECURE
from fedstage.plan.training_folder import odds_files, owners, training_id
from fedstage.protocol.exchange import exchanges_logits
from fedstage.results.tidy import COST, COSTS, SEED, Tidy, typed, write_tidy
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.settings.recipes import LocalRecipe, Recipe
from fedstage.stages.phases import Moved, held_bytes, one_shot_bytes, phases_of
from fedstage.stages.scores import header_of
from fedstage.storage.provenance import PARTS
from fedstage.storage.records import by_path, records_of

#: The stages of a one-shot method that clients compute; they may also train an aggregator together.
_CLIENTS = (
    "local_model", "quantised_model", "client_generator", "client_discriminator", "feature_moments",
)  # fmt: skip
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
    jobs: dict[tuple[str, str], dict[tuple[int, int], list[float]]] = {}
    alone: list[float] = []
    parts = run.candidates[run.which()].parts
    for number, part in enumerate(parts):
        for stage, side, round_, seconds in _jobs(part):
            rounds = jobs.setdefault((stage, side), defaultdict(list))
            rounds[number, round_].append(seconds)
            alone += [seconds] if stage == "local_training" and number == len(parts) - 1 else []
    for (stage, side), rounds in jobs.items():
        yield _row(stage, side, rounds)
    last = {at for rounds in jobs.values() for at in rounds if at[0] == len(parts) - 1 and at[1]}
    if not last:
        return
    yield _row("participant", "round", {(0, i): [one] for i, one in enumerate(alone)})
    for name, stages in _ROUND.items():
        together: dict[tuple[int, int], list[float]] = {}
        for (stage, _), rounds in jobs.items():
            for at in last & rounds.keys() if stage in stages else ():
                together.setdefault(at, []).extend(rounds[at])
        if together:
            yield _row(name, "round", dict(sorted(together.items())))


def _row(stage: str, side: str, rounds: Mapping[tuple[int, int], Sequence[float]]) -> Row:
    """Return a row of seconds; jobs record milliseconds, rounding removes errors of float sums."""
    sums = [sum(of) for of in rounds.values()]
    several = len(sums) > 1
    low, median, high = quantiles(sums, n=4, method="inclusive") if several else [*sums] * 3
    numbers = {"seconds": sum(sums), "median_s": median, "low_s": low, "high_s": high}
    return {
        "stage": stage,
        "side": side,
        "jobs": sum(map(len, rounds.values())),
        "rounds": sum(1 for _, round_ in rounds if round_) if stage != "participant" else None,
        **{name: round(value, _DIGITS) for name, value in numbers.items()},
    }


def _jobs(part: Part) -> Iterator[tuple[str, str, int, float]]:
    """Yield stage, side, round (0 outside of rounds) and seconds of each job of a part."""
    recipe = part.recipe
    if isinstance(recipe, Recipe):
        theirs = ["local_training", *(stage.name for stage in SECURE)]
        theirs += ["logits"] if exchanges_logits(recipe) else []
        for job, seconds in read_times(Path(), recipe, part.length.rounds).items():
            yield job.stage, _side(job.stage in theirs), job.round, seconds
        files = odds_files(recipe)
    else:
        files = held_files(recipe, part.length)
    for record in _behind(Path(), files):
        clients = _by_clients(recipe, record)
        yield str(record["stage"]), _side(clients), 0, float(record["compute_s"])


def _side(clients: bool) -> str:
    return "clients" if clients else "server"


def _by_clients(recipe: Recipe | LocalRecipe | OneShotRecipe, record: Mapping[str, Any]) -> bool:
    """Whether clients do a job for models that are trained to the end."""
    stage = record["stage"]
    if isinstance(recipe, LocalRecipe):
        return not (recipe.pooled or recipe.on_core)
    if isinstance(recipe, Recipe):
        return stage in _CLIENTS
    if stage == "aggregator" and recipe.aggregator_training is not None:
        return True
    of_their_own = record["options"].get("images") in ("validation", "aggregator")
    return stage in _CLIENTS or (stage == "client_logits" and of_their_own)


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
                raise FedstageError(
                    f"{file}: no record below results/logs has its seconds: the logs were "
                    "deleted; delete the file to make it again"
                )
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
    latest = {
        file: seconds
        for record in records_of(root, *map(training_id, reversed(owners(recipe))))
        for file, seconds in _seconds_of(record).items()
    }
    made = (
        job for job in jobs_of(recipe, rounds) if job.file in latest or not _unread(job, rounds)
    )
    return {job: _known(latest, job) for job in made}


def _seconds_of(record: Mapping[str, Any]) -> dict[str, float]:
    """Return the seconds of each file that a job made, from its parts if it has several.

    Earlier versions did not record the seconds of each of several participants.
    """
    outputs = record["outputs"]
    single = len(outputs.get("outputs", {})) <= 1
    whole = dict.fromkeys(by_path(outputs), float(record["compute_s"])) if single else {}
    return {**whole, **record.get(PARTS, {})}


def _unread(job: Job, last: int) -> bool:
    """Whether no job reads a job's files, as for students but the main one in the last round."""
    return job.stage in ("distillation", "head_sharing") and job.round == last and job.group > 0


def _known(latest: Mapping[str, float], job: Job) -> float:
    if job.file not in latest:
        raise FedstageError(
            f"{job.file}: no record below results/logs has its seconds: logs were deleted, or "
            "are of an earlier version; delete the file to make it again"
        )
    return latest[job.file]


# --- bytes ----------------------------------------------------------------------------------------


def _bytes(run: ExperimentRun) -> Iterator[Row]:
    """Yield what travels in each phase, one model up and one down, and what prediction holds."""
    parts = run.candidates[run.which()].parts
    for phase in phases_of(parts):
        yield _travels(phase.name, "travel", phase.moved) | {"rounds": phase.rounds}
    unit = one_shot_bytes(parts[-1]) / 2
    yield _travels("one model", "unit", Moved(unit, unit))
    yield {"stage": "prediction", "side": "memory", "memory_bytes": held_bytes(parts[-1])}


def _travels(stage: str, side: str, moved: Moved) -> Row:
    numbers = {"bytes_up": moved.up, "bytes_down": moved.down, "everyone": moved.everyone}
    return {"stage": stage, "side": side, **numbers}
