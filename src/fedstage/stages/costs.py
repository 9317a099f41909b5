"""Stage `costs`: the accuracy of each method with its bytes, seconds and memory."""

from collections.abc import Mapping
from pathlib import Path

from fedstage.experiments.runs_file import ExperimentRun, read_runs_file
from fedstage.results.costs import COLUMNS, PRIVATE, seconds_of, shown_costs
from fedstage.results.figures.costs import describe_costs, draw_costs
from fedstage.results.figures.looks import looks_of_runs
from fedstage.results.figures.style import save_figure
from fedstage.results.privacy import guarantee
from fedstage.results.tables.columns import Cell, write_exact
from fedstage.results.tables.documents import TableFiles, write_document
from fedstage.results.tables.labels import for_people, settings_for_people
from fedstage.results.tables.measured import read_metrics
from fedstage.settings.scores import Metric
from fedstage.storage.tables import load_table


def costs(*, runs: Path, communicated: Path, files: TableFiles, figure: list[Path]) -> None:
    """Put accuracy, bytes, seconds of clients and server, and memory of each method in one table.

    Where any method has privacy, epsilon and delta stand next to accuracy.

    Parameters
    ----------
    communicated : Path
        Bytes and memory of each run, in the order of `runs`: the stage `communication` wrote it.
    files : TableFiles
        Exact numbers have one row per run; for people there are paired differences, too.
    figure : list of Path
        Accuracy against bytes, one point per method: a path for each format and for its caption.
    """
    experiment = read_runs_file(runs)
    metric, people = experiment.metric, for_people(experiment)
    sent = load_table(communicated, ["bytes", "memory_bytes"]).to_pylist()
    measured: list[dict[str, Cell]] = [
        _costs(run, metric, moved) for run, moved in zip(experiment.runs, sent, strict=True)
    ]
    named = (column.name for column in PRIVATE)
    none: dict[str, Cell] = {
        name: None for name in named if any(name in costs for costs in measured)
    }
    measured = [none | costs for costs in measured]
    pairs = list(zip(experiment.runs, measured, strict=True))
    rows = [run.settings | costs for run, costs in pairs]
    write_exact(rows, (*COLUMNS, *PRIVATE), csv=files.csv, parquet=files.parquet)
    labelled = [settings_for_people(run.settings, experiment) | costs for run, costs in pairs]
    axes = (people.rows, people.columns)
    source = (
        "what each method reaches on test samples, and what it costs until training ends. Seconds "
        "are those that the jobs recorded; jobs that run at the same time slow one another down."
    )
    table = shown_costs(labelled, *axes, metric)
    write_document(experiment, source, [table], markdown=files.markdown, html=files.html)
    caption = f"{experiment.title}. {describe_costs(labelled, *axes, experiment.bands)}"
    looks = looks_of_runs(experiment)
    save_figure(draw_costs(labelled, *axes, metric, looks, experiment.bands), figure, caption)


def _costs(run: ExperimentRun, metric: Metric, moved: Mapping[str, float]) -> dict[str, Cell]:
    """Return what a run reaches and costs, by the columns of files."""
    seconds = seconds_of(Path(), run.candidates[run.which()].parts)
    return {
        "score": float(read_metrics(run.metrics, metric)[metric].iloc[-1]),
        "bytes": moved["bytes"],
        "clients_s": seconds.clients,
        "server_s": seconds.server,
        "memory_bytes": moved["memory_bytes"],
        **guarantee(run),
    }
