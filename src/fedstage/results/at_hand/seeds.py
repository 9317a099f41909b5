"""The number of seeds that would decide a claim, and their cost."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev

from tabulate import tabulate  # type: ignore[import-untyped]

from fedstage.errors import FedstageError
from fedstage.results.at_hand.runs import runs_path
from fedstage.results.cells import show_point
from fedstage.results.claims.comparisons import Cell
from fedstage.results.claims.effects import Effect
from fedstage.results.claims.judging import Judged, judge_claims
from fedstage.results.claims.library import MEASURES
from fedstage.results.claims.power import POWER, expected, seeds_needed
from fedstage.results.claims.verdicts import Judgement
from fedstage.results.costs.seconds import seconds_of
from fedstage.results.published.matching import without_seed
from fedstage.results.runs_file import ExperimentRun, ExperimentRuns
from fedstage.results.tables.labels import NOTHING
from fedstage.settings.claims import ClaimsToJudge
from fedstage.settings.suggestions import suggest
from fedstage.settings.validation import validate
from fedstage.storage.files import load_json

_DESCRIPTIONS = Path("results/descriptions")
_HOUR = 3600.0
_HEADS = [
    *("comparison", "seeds", "deviation", "effect", "needed", "for half of it"),
    *("hours", "hours for half"),
]


def seeds(claim: str, experiment: str | None = None) -> str:
    """Return a table of the seeds that decide each comparison of a claim, with power 0.8.

    The deviation is of the paired effects of the seeds at hand. Hours are from the records of the
    jobs behind the runs of both sides, times the seeds; since runs share jobs, it may take less.

    Parameters
    ----------
    experiment : str, optional
        EXPERIMENT/SCALE; needed where several have a claim of this id.

    Raises
    ------
    FedstageError
        If there are no results of the experiment, or it has no such claim, or several have.
    """
    target = _target(claim, experiment)
    runs = runs_path(target, Path())
    path = runs.with_name(runs.name.replace(".runs.", ".claims."))
    tables = [Path("results") / kind / f"{target}.runs.parquet" for kind in MEASURES]
    judged = judge_claims(runs, path, [table for table in tables if table.is_file()])
    (judgement,) = [one for one in judged.judgements if one.claim.id == claim]
    seconds = _seconds(judged, judgement)
    rows = [_row(judgement, effect, seconds) for effect in judgement.effects]
    table = tabulate(rows, headers=_HEADS, tablefmt="simple", disable_numparse=True)
    return f"{table}\n\n{_about(judgement, target)}"


def _target(claim: str, experiment: str | None) -> str:
    """Return the experiment and scale that has results and a claim."""
    names = sorted(_DESCRIPTIONS.glob("*/*.claims.json"))
    known = {f"{path.parent.name}/{path.name.removesuffix('.claims.json')}": path for path in names}
    if experiment is not None:
        runs_path(experiment, Path())
        known = {name: path for name, path in known.items() if name == experiment}
    claims = {name: _ids(path) for name, path in known.items()}
    found = [name for name, ids in claims.items() if claim in ids]
    if len(found) > 1:
        raise FedstageError(
            f"{claim}: a claim on {' and '.join(found)}; name one, with --experiment"
        )
    if not found:
        every = dict.fromkeys(name for ids in claims.values() for name in ids)
        there = f"there is {', '.join(every)}" if every else "no claim has results"
        raise FedstageError(f"{claim}: no such claim; {there}{suggest(claim, every)}")
    return found[0]


def _ids(path: Path) -> list[str]:
    listed = validate(ClaimsToJudge, load_json(path), str(path))
    return [claim.id for claim in listed.claims]


def _row(judgement: Judgement, effect: Effect, seconds: Mapping[str, float | None]) -> list[str]:
    """Return the line of a comparison: seeds at hand, and seeds for the whole and half effect."""
    whole, half = (
        seeds_needed(judgement.claim, effect, judgement.level, judgement.looks, share)
        for share in (1.0, 0.5)
    )
    many = len(effect.values) > 1
    return [
        effect.shown,
        str(len(effect.values)),
        f"{stdev(effect.values):.3g}" if many else NOTHING,
        f"{expected(judgement.claim, effect):+.3g}" if effect.values else NOTHING,
        *(NOTHING if needed is None else str(needed) for needed in (whole, half)),
        *(_hours(effect, needed, seconds) for needed in (whole, half)),
    ]


def _hours(effect: Effect, needed: int | None, seconds: Mapping[str, float | None]) -> str:
    cells = {show_point(cell.axes) for pair in effect.pairs for cell in pair}
    taken = [seconds[cell] for cell in cells]
    known = [each for each in taken if each is not None]
    if needed is None or len(known) < len(taken):
        return NOTHING
    return f"{needed * sum(known) / _HOUR:.3g}"


def _seconds(judged: Judged, judgement: Judgement) -> dict[str, float | None]:
    """Return the seconds of one seed of each compared cell, None where they are not recorded."""
    cells = [cell for effect in judgement.effects for pair in effect.pairs for cell in pair]
    return {show_point(cell.axes): _of_cell(cell, judged.experiment) for cell in cells}


def _of_cell(cell: Cell, experiment: ExperimentRuns) -> float | None:
    point = show_point(cell.axes)
    runs = [run for run in experiment.runs if show_point(without_seed(run.settings)) == point]
    try:
        return fmean(_of_runs(runs))
    except FedstageError:  # no records: then hours are left out
        return None


def _of_runs(runs: Sequence[ExperimentRun]) -> list[float]:
    found = [seconds_of(Path(), run.candidates[run.which()].parts) for run in runs]
    return [seconds.clients + seconds.server for seconds in found]


def _about(judgement: Judgement, target: str) -> str:
    """Write what the numbers mean: the effect, the level and the looks."""
    source = "published" if judgement.published_holds is not None else "declared or measured"
    looks = f", at the last of the looks {list(judgement.looks)}" if judgement.looks else ""
    return (
        f"Seeds that find the {source} effect, or half of it, in {target} with probability "
        f"{POWER:g}, by a paired t-test at {judgement.level:.3g}{looks}."
    )
