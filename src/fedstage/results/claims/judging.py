"""All claims of an experiment, judged together."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pandas as pd

from fedstage.results.claims.families import correct
from fedstage.results.claims.gate import fault_of, without_regime
from fedstage.results.claims.measurements import (
    cells_of,
    images_of_runs,
    unreached,
    values_of_runs,
    values_of_table,
)
from fedstage.results.claims.table import claim_rows
from fedstage.results.claims.verdicts import Judgement, judge
from fedstage.results.runs_file import ExperimentRuns
from fedstage.results.tables.labels import settings_for_people
from fedstage.results.tables.layout import describe_source
from fedstage.results.tables.runs import last_rounds, read_runs
from fedstage.settings.claims import Claim, ClaimsToJudge
from fedstage.settings.scores import SECONDS
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
    fault = regime_fault(listed, experiment, frame)
    judged = correct(judge_each(listed, experiment, frame, tables), listed.families)
    judged = judged if fault is None else [without_regime(one) for one in judged]
    metrics = {row["metric"] for row in claim_rows(judged, experiment.metric)}
    source = _source(experiment, frame, tables, metrics)
    return Judged(experiment, judged, source if fault is None else f"{source} {fault}")


def regime_fault(
    listed: ClaimsToJudge, experiment: ExperimentRuns, frame: pd.DataFrame
) -> str | None:
    """Return why the gate of a scale does not hold; None if it holds or there is none."""
    if listed.gate is None:
        return None
    cells = cells_of(experiment, values_of_runs(frame, experiment.metric), published=False)
    show = partial(settings_for_people, experiment=experiment)
    return fault_of(listed.gate, experiment.experiment, cells, show)


def judge_each(
    listed: ClaimsToJudge,
    experiment: ExperimentRuns,
    frame: pd.DataFrame,
    tables: Sequence[pd.DataFrame],
) -> list[Judgement]:
    """Judge each claim by itself, without correction and gate."""
    return [_judge(claim, listed, experiment, frame, tables) for claim in listed.claims]


def _source(
    experiment: ExperimentRuns, frame: pd.DataFrame, tables: list[pd.DataFrame], metrics: set[str]
) -> str:
    """Describe the measured numbers: accuracies of a round, columns of tables, or both."""
    others = sorted(metric for metric in metrics if any(metric in table for table in tables))
    names = ", ".join(f"`{metric}`" for metric in others)
    name, scale = experiment.experiment, experiment.scale
    if experiment.metric in SECONDS or (metrics and metrics == set(others)):
        return f"Experiment `{name}` at scale `{scale}`: {names} of each run."
    accuracies = describe_source(name, scale, last_rounds(frame), experiment.metric)
    return f"{accuracies} Some claims are about {names} of each run." if others else accuracies


def _judge(
    claim: Claim,
    listed: ClaimsToJudge,
    experiment: ExperimentRuns,
    frame: pd.DataFrame,
    tables: Sequence[pd.DataFrame],
) -> Judgement:
    """Judge a claim by its metric; only the metric of the table has published numbers."""
    metric = claim.metric or experiment.metric
    table = next((table for table in tables if metric in table), None)
    limits: dict[int, float] = {}
    if table is not None:
        values = values_of_table(table, experiment, metric)
        limits = unreached(values, table, experiment, metric)
        values |= limits
    else:
        values = values_of_runs(frame, metric)
    images = images_of_runs(frame) if metric == "top1_accuracy" else None
    cells = cells_of(experiment, values, metric == experiment.metric, images, limits)
    looks = [family.looks for family in listed.families if claim.id in family.claims]
    return judge(
        claim,
        cells,
        lambda point: settings_for_people(point, experiment),
        listed.comparisons.get(claim.id),
        looks=looks[0] if looks else listed.looks,
        printed=claim.id in listed.printed,
    )
