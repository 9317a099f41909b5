"""Stage `claims`: whether claims hold in the published and in the measured numbers."""

from pathlib import Path

from fedstage.results.claims.judging import judge_claims
from fedstage.results.claims.report import SCHEMA, claim_rows, render_report
from fedstage.results.tables import html as html_writer
from fedstage.results.tables.columns import write_csv, write_parquet
from fedstage.results.tables.documents import TableFiles
from fedstage.storage.files import save_text


def claims(
    *,
    runs: Path,
    scores: Path | None = None,
    definitions: Path,
    files: TableFiles,
    measurements: list[Path] | None = None,
) -> None:
    """Judge claims by the last evaluated round of each run, or by other measurements of the runs.

    Parameters
    ----------
    files : TableFiles
        Exact numbers have one row per comparison.
    measurements : list of Path, optional
        Parquet tables with a column for every axis, for `seed` and for further metrics, such as
        seconds; metrics that none of them has are read from the runs' metrics files.
    """
    judged = judge_claims(runs, definitions, measurements or [], scores)
    experiment = judged.experiment
    rows = claim_rows(judged.judgements, experiment.metric)
    write_csv(files.csv, rows, SCHEMA.names)
    write_parquet(files.parquet, rows, SCHEMA)
    title = f"{experiment.title}: claims"
    report = (judged.judgements, title, judged.source, experiment.notes)
    save_text(files.markdown, render_report(*report))
    save_text(files.html, render_report(*report, writer=html_writer))
