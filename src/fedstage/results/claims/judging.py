"""All claims on an experiment: the numbers of its cells, and Holm's correction within a paper."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import isfinite
from pathlib import Path

import pandas as pd

from fedstage.errors import FedstageError
from fedstage.experiments.published_rows import without_seed
from fedstage.experiments.runs_file import SEED, ExperimentRun, ExperimentRuns
from fedstage.outcomes.comparisons import Cell
from fedstage.results.claims.verdicts import Judgement, judge
from fedstage.results.intervals import holm
from fedstage.results.tables.labels import settings_for_people
from fedstage.results.tables.layout import describe_source
from fedstage.results.tables.runs import RUN, last_rounds, read_runs
from fedstage.settings.cells import as_text, show_point
from fedstage.settings.scores import SECONDS, Claim, ClaimsToJudge, Family
from fedstage.settings.validation import validate
from fedstage.storage.files import load_json
from fedstage.storage.tables import load_frame


@dataclass(frozen=True)
class Judged:
    """The judgements on an experiment's claims, and a sentence about the measured numbers."""

    experiment: ExperimentRuns
    judgements: Sequence[Judgement]
    source: str


def judge_claims(
    runs: Path, definitions: Path, measurements: Sequence[Path] = (), scores: Path | None = None
) -> Judged:
    """Judge claims by the last evaluated round of each run, or by other measurements of the runs.

    Parameters
    ----------
    runs, definitions : Path
        The runs file, and the claims with the number of comparisons of each.
    measurements : sequence of Path
        Tables with further metrics of the runs, as for the stage `claims`.
    scores : Path, optional
        The scores file; by default the metrics files of the runs are read.

    Raises
    ------
    FedstageError
        If a file is missing or damaged, or if a claim is about something that is not measured.
    """
    experiment, frame = read_runs(runs, scores)
    listed = validate(ClaimsToJudge, load_json(definitions), str(definitions))
    tables = [load_frame(path) for path in measurements]
    judged = judge_each(listed, experiment, frame, tables)
    return replace(judged, judgements=correct(judged.judgements, listed.families))


def judge_each(
    listed: ClaimsToJudge,
    experiment: ExperimentRuns,
    frame: pd.DataFrame,
    tables: Sequence[pd.DataFrame],
) -> Judged:
    """Judge each claim by the frame of `read_runs`, or by tables with further metrics."""
    judged = [_judge(claim, listed, experiment, frame, tables) for claim in listed.claims]
    metrics = {claim.metric or experiment.metric for claim in listed.claims}
    source = _source(experiment, frame, tables, metrics)
    return Judged(experiment, judged, source)


def correct(judgements: Sequence[Judgement], families: Sequence[Family]) -> list[Judgement]:
    """Return judgements on primary claims with p-values that Holm's method corrects.

    With 95 % probability, all verdicts on the primary claims of a paper are right. Claims of a
    family that are not measured count with a p-value of 1. Primary claims of none of the `families`
    form one more. Other claims are not corrected.
    """
    found = {one.claim.id: one for one in judgements}
    named = {name for family in families for name in family.claims}
    others = [name for name, one in found.items() if one.claim.primary and name not in named]
    for family in (*families, Family(claims=others, primary=len(others))):
        measured = [name for name in family.claims if name in found and found[name].measured]
        p_values = [min(found[name].p.values()) for name in measured]
        adjusted = holm([*p_values, *[1.0] * (family.primary - len(measured))])
        for name, p, q in zip(measured, p_values, adjusted, strict=False):
            found[name] = found[name].times(q / p if p else float(family.primary))
    return [found[one.claim.id] for one in judgements]


def _judge(
    claim: Claim,
    listed: ClaimsToJudge,
    experiment: ExperimentRuns,
    frame: pd.DataFrame,
    tables: Sequence[pd.DataFrame],
) -> Judgement:
    """Judge a claim by its metric."""
    metric = claim.metric or experiment.metric
    table = next((table for table in tables if metric in table), None)
    if table is None:
        values = values_of_runs(frame, metric)
    else:
        values = values_of_table(table, experiment, metric)
    cells = cells_of(experiment, values, None if metric == experiment.metric else metric)
    show = partial(settings_for_people, experiment=experiment)
    return judge(claim, cells, show, listed.comparisons.get(claim.id))


def _source(
    experiment: ExperimentRuns,
    frame: pd.DataFrame,
    tables: Sequence[pd.DataFrame],
    metrics: set[str],
) -> str:
    """Describe the measured numbers: accuracies of a round, columns of tables, or both."""
    others = sorted(metric for metric in metrics if any(metric in table for table in tables))
    names = ", ".join(f"`{metric}`" for metric in others)
    name, scale = experiment.experiment, experiment.scale
    if experiment.metric in SECONDS or (metrics and metrics == set(others)):
        return f"Experiment `{name}` at scale `{scale}`: {names} of each run."
    accuracies = describe_source(name, scale, last_rounds(frame), experiment.metric)
    return f"{accuracies} Some claims are about {names} of each run." if others else accuracies


def values_of_runs(frame: pd.DataFrame, metric: str) -> dict[int, float]:
    """Return a metric of each run's last evaluated round, by the run's position."""
    last = last_rounds(frame)
    if metric not in last or not pd.api.types.is_numeric_dtype(last[metric]):
        known = ", ".join(last.select_dtypes("number").columns.drop(RUN))
        raise FedstageError(f"claims: metric = {metric!r}: not measured; use one of {known}")
    return dict(zip(last[RUN], last[metric].astype(float), strict=True))


def values_of_table(
    table: pd.DataFrame, experiment: ExperimentRuns, metric: str
) -> dict[int, float]:
    """Return a metric of each run from a table with the axes, `seed` and the metric as columns.

    Raises
    ------
    FedstageError
        If a column is missing, or if two rows belong to the same run.
    """
    names = list(experiment.runs[0].settings)
    missing = [name for name in [*names, metric] if name not in table]
    if missing:
        raise FedstageError(f"measurements: {missing[0]}: no such column")
    values: dict[tuple[str, ...], float] = {}
    for key, value in zip(table[names].itertuples(index=False), table[metric], strict=True):
        place = tuple("none" if pd.isna(part) else as_text(part) for part in key)
        if place in values:
            run = show_point(dict(zip(names, place, strict=True)))
            raise FedstageError(f"measurements: {run}: is listed twice; keep one")
        values[place] = float(value)
    keys = [tuple(as_text(run.settings[name]) for name in names) for run in experiment.runs]
    return {i: values[key] for i, key in enumerate(keys) if key in values}


def cells_of(
    experiment: ExperimentRuns, values: Mapping[int, float], metric: str | None = None
) -> list[Cell]:
    """Return the cells of an experiment, in the order of its runs.

    Parameters
    ----------
    values : mapping
        The measured numbers by a run's position. A cell with a run whose number is not finite
        counts as not measured: if some runs never reach a goal, the others are the fast ones.
    metric : str, optional
        Metric of the published numbers; by default the metric of the table.
    """
    seeds: dict[str, dict[int, ExperimentRun]] = {}
    for i, run in enumerate(experiment.runs):
        seeds.setdefault(show_point(without_seed(run.settings)), {})[i] = run
    return [_cell(same, values, metric) for same in seeds.values()]


def _cell(runs: Mapping[int, ExperimentRun], values: Mapping[int, float], of: str | None) -> Cell:
    """Return the cell of runs that differ in their seed, by their positions."""
    first = next(iter(runs.values()))
    measured = {run.settings[SEED]: values[i] for i, run in runs.items() if i in values}
    if not all(map(isfinite, measured.values())):
        measured = {}
    number = first.published if of is None else first.published_in.get(of)
    axes = without_seed(first.settings)
    printed = (number.value, number.std, number.seeds) if number else ()
    return Cell(axes, measured, *printed)
