"""Stage `costs`: the accuracy of each method with its bytes, seconds and memory."""

from dataclasses import replace
from pathlib import Path

from fedstage.results.costs.figure import describe_costs, draw_costs
from fedstage.results.costs.seconds import seconds_of
from fedstage.results.costs.table import RunCost, exact_rows, exact_schema, legend, shown_rows
from fedstage.results.figures.style import save_figure
from fedstage.results.runs_file import ExperimentRun, read_runs_file
from fedstage.results.tables.exact import write_csv, write_parquet
from fedstage.results.tables.labels import for_people, settings_for_people
from fedstage.results.tables.plain import write_html, write_markdown
from fedstage.results.tables.runs import read_metrics
from fedstage.settings.scores import Metric
from fedstage.storage.tables import load_table


def costs(
    *,
    runs: Path,
    communicated: Path,
    csv: Path,
    parquet: Path,
    markdown: Path,
    html: Path,
    figure: list[Path],
) -> None:
    """Put accuracy, bytes, seconds of clients and server, and memory of each method in one table.

    Parameters
    ----------
    communicated : Path
        Bytes and memory of each run, in the order of `runs`: the stage `communication` wrote it.
    csv, parquet : Path
        Exact numbers, a row a run.
    markdown, html : Path
        Means over seeds, for people, with paired differences.
    figure : list of Path
        Accuracy against bytes, a point a method: a path for each format and for its caption.
    """
    experiment = read_runs_file(runs)
    metric, people = experiment.metric, for_people(experiment)
    sent = load_table(communicated, ["bytes", "memory_bytes"]).to_pylist()
    measured = [
        _cost(run, metric, **numbers) for run, numbers in zip(experiment.runs, sent, strict=True)
    ]
    rows = exact_rows(measured)
    write_csv(csv, rows)
    write_parquet(parquet, rows, exact_schema(rows))
    labelled = [
        replace(run, settings=settings_for_people(run.settings, experiment)) for run in measured
    ]
    shown, explained = shown_rows(labelled, people.rows, people.columns, metric), legend(metric)
    source = (
        f"Experiment `{experiment.experiment}` at scale `{experiment.scale}`: what each method "
        "reaches on test samples, and what it costs until training ends. Seconds are those that "
        "the jobs recorded; jobs that run at the same time slow one another down."
    )
    title = experiment.title
    write_markdown(markdown, title, source, shown, explained)
    write_html(html, shown, explained, title=title, source=source, left=len(experiment.axes))
    drawn = draw_costs(labelled, people.rows, people.columns, metric)
    caption = describe_costs(labelled, people.rows, people.columns)
    save_figure(drawn, figure, f"{title}. {caption}")


def _cost(run: ExperimentRun, metric: Metric, **numbers: float) -> RunCost:
    score = float(read_metrics(run.metrics, metric)[metric].iloc[-1])
    taken = seconds_of(Path(), run.candidates[run.which()].parts)
    return RunCost(run.settings, score, clients_s=taken.clients, server_s=taken.server, **numbers)
