"""Stage `report`: one HTML file with all results of an experiment at a scale."""

from pathlib import Path

from fedstage.results.claims.judging import judge_claims
from fedstage.results.report.origins import circumstances, origins_of
from fedstage.results.report.page import facts, render_page
from fedstage.results.report.sections import (
    claims_section,
    result_sections,
    runs_section,
    settings_section,
    table_section,
)
from fedstage.results.tables.presented import count_dropped, present
from fedstage.results.tables.runs import read_scores
from fedstage.results.tables.summary import summarise
from fedstage.storage.files import save_text


def report(
    *,
    runs: Path,
    scores: Path | None = None,
    definitions: Path | None = None,
    measurements: list[Path] | None = None,
    documents: list[Path] | None = None,
    output: Path,
) -> None:
    """Write the report: table, figures, other results, claims, and origins of numbers.

    It needs no network and no other file. Seconds, machines and versions are read from the
    records next to the logs, so that two reports of the same results may differ.

    Parameters
    ----------
    definitions, measurements : Path, list of Path, optional
        The claims about the experiment, and tables with further metrics for them.
    documents : list of Path, optional
        HTML of other results, each followed by its figures as SVG and their captions.
    """
    experiment, frame = read_scores(runs, scores)
    table = summarise(frame, experiment.axes, experiment.metric)
    layout, source = present(experiment, frame, table, count_dropped(experiment, frame))
    origins = origins_of(experiment.runs, Path())
    judged = judge_claims(runs, definitions, measurements or [], scores) if definitions else None
    sections = [
        table_section(layout, source),
        *result_sections(documents or []),
        *([claims_section(judged)] if judged else []),
        runs_section(experiment, frame, origins),
        settings_section(experiment, origins),
    ]
    about = circumstances(experiment.experiment, experiment.scale, output, origins)
    save_text(output, render_page(experiment.title, [facts(about)], sections))
