"""Stage `claims`: whether claims hold in the published and in the measured numbers."""

from pathlib import Path

import pandas as pd

from fedstage.results.claims.measurements import cells_of, values_of_runs, values_of_table
from fedstage.results.claims.report import render_report
from fedstage.results.claims.table import SCHEMA, claim_rows
from fedstage.results.claims.verdicts import Judgement, correct, judge
from fedstage.results.runs_file import ExperimentRuns
from fedstage.results.tables import html as html_writer
from fedstage.results.tables.labels import settings_for_people
from fedstage.results.tables.layout import describe_source
from fedstage.results.tables.plain import write_csv, write_parquet
from fedstage.results.tables.runs import last_rounds, read_runs
from fedstage.settings.claims import Claim, ClaimsToJudge
from fedstage.settings.scores import SECONDS
from fedstage.settings.validation import validate
from fedstage.storage.files import load_json, save_text
from fedstage.storage.tables import load_frame


def claims(
    *,
    runs: Path,
    definitions: Path,
    csv: Path,
    parquet: Path,
    markdown: Path,
    html: Path,
    measurements: list[Path] | None = None,
) -> None:
    """Judge claims by the last evaluated round of each run, or by other measurements of the runs.

    Parameters
    ----------
    csv, parquet : Path
        The judgements with exact numbers: a row a comparison.
    measurements : list of Path, optional
        Parquet tables with a column for every axis, for `seed` and for further metrics, such as
        seconds; metrics that none of them has are read from the runs' metrics files.
    """
    experiment, frame = read_runs(runs)
    listed = validate(ClaimsToJudge, load_json(definitions), str(definitions))
    tables = [load_frame(path) for path in measurements or []]
    judged = correct(
        [
            _judge(claim, listed.comparisons.get(claim.id), experiment, frame, tables)
            for claim in listed.claims
        ]
    )
    rows = claim_rows(judged, experiment.metric)
    write_csv(csv, rows, SCHEMA.names)
    write_parquet(parquet, rows, SCHEMA)
    source = _source(experiment, frame, tables, {row["metric"] for row in rows})
    report = (judged, f"{experiment.title}: claims", source, experiment.notes)
    save_text(markdown, render_report(*report))
    save_text(html, render_report(*report, writer=html_writer))


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
    claimed: int | None,
    experiment: ExperimentRuns,
    frame: pd.DataFrame,
    tables: list[pd.DataFrame],
) -> Judgement:
    """Judge a claim by its metric; only the metric of the table has published numbers."""
    metric = claim.metric or experiment.metric
    table = next((one for one in tables if metric in one), None)
    if table is not None:
        values = values_of_table(table, experiment, metric)
    else:
        values = values_of_runs(frame, metric)
    cells = cells_of(experiment, values, published=metric == experiment.metric)
    return judge(claim, cells, lambda point: settings_for_people(point, experiment), claimed)
