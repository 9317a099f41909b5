"""Stage `claims`: whether claims hold in the published numbers, and in what was measured."""

from pathlib import Path

import pandas as pd

from fedstage.results.claims.measurements import cells_of, values_of_runs, values_of_table
from fedstage.results.claims.report import render_report, render_report_html
from fedstage.results.claims.table import SCHEMA, as_columns, claim_rows
from fedstage.results.claims.verdicts import Judgement, judge
from fedstage.results.tables.layout import describe_source
from fedstage.results.tables.runs import ResultRuns, last_rounds, read_runs
from fedstage.settings.claims import Claim, ClaimList
from fedstage.settings.scores import SECONDS
from fedstage.settings.validation import validate
from fedstage.storage.files import load_json, replacing
from fedstage.storage.tensors import load_frame, save_table


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
    runs : Path
        JSON file of the experiment's runs: settings, metrics and published number of each.
    definitions : Path
        JSON file of the claims.
    csv, parquet : Path
        The judgements with exact numbers: a row a comparison.
    markdown, html : Path
        The report for people.
    measurements : list of Path, optional
        Parquet tables with a column for every axis, for `seed` and for what claims may be about,
        such as seconds; what none of them has is read from the runs' metrics.

    Raises
    ------
    FedstageError
        If a file is missing or damaged, or what a claim is about was not measured.
    """
    experiment, frame = read_runs(runs)
    wanted = validate(ClaimList, load_json(definitions), str(definitions)).claims
    tables = [load_frame(path) for path in measurements or []]
    judged = [_judge(claim, experiment, frame, tables) for claim in wanted]
    rows = claim_rows(judged, experiment.metric)
    save_table(parquet, as_columns(rows), SCHEMA)
    source = _source(experiment, frame, tables, {row["metric"] for row in rows})
    report = (judged, f"{experiment.title}: claims", source, experiment.notes)
    with replacing(csv) as temporary:
        pd.DataFrame(rows, columns=SCHEMA.names).to_csv(temporary, index=False, lineterminator="\n")
    with replacing(markdown) as temporary:
        temporary.write_text(render_report(*report), encoding="utf-8")
    with replacing(html) as temporary:
        temporary.write_text(render_report_html(*report), encoding="utf-8")


def _source(
    experiment: ResultRuns, frame: pd.DataFrame, tables: list[pd.DataFrame], metrics: set[str]
) -> str:
    """Say what was measured: accuracies of a round, columns of tables, or both."""
    others = sorted(metric for metric in metrics if any(metric in table for table in tables))
    named = ", ".join(f"`{metric}`" for metric in others)
    about = (experiment.experiment, experiment.scale)
    if experiment.metric in SECONDS or (metrics and metrics == set(others)):
        return f"Experiment `{about[0]}` at scale `{about[1]}`: {named} of each run."
    accuracies = describe_source(*about, last_rounds(frame), experiment.metric)
    return f"{accuracies} Some claims are about {named} of each run." if others else accuracies


def _judge(
    claim: Claim, experiment: ResultRuns, frame: pd.DataFrame, tables: list[pd.DataFrame]
) -> Judgement:
    """Judge a claim on what it is about; published numbers are those of the experiment's table."""
    metric = claim.metric or experiment.metric
    table = next((one for one in tables if metric in one), None)
    if table is not None:
        values = values_of_table(table, experiment, metric)
    else:
        values = values_of_runs(frame, metric)
    return judge(claim, cells_of(experiment, values, published=metric == experiment.metric))
