"""Stages that draw: accuracy over rounds and partitions, published accuracy, and an axis."""

from pathlib import Path

from fedstage.errors import FedstageError, fault_of
from fedstage.experiments.runs_file import SEED
from fedstage.results.figures.accuracy import describe_accuracy, draw_accuracy
from fedstage.results.figures.comparison import describe_comparison, draw_comparison
from fedstage.results.figures.looks import looks_of_runs
from fedstage.results.figures.names import name_partitions, read_names
from fedstage.results.figures.partition import (
    describe_partition,
    draw_partition,
    find_partitions,
    read_histogram,
)
from fedstage.results.figures.style import save_figure
from fedstage.results.figures.sweep import describe_sweep, draw_sweep
from fedstage.results.tables.columns import frame_as_csv
from fedstage.results.tables.labels import for_people, frame_for_people
from fedstage.results.tables.runs import read_runs, read_scores
from fedstage.results.tables.summary import summarise
from fedstage.storage.files import save_text


def figures(
    *,
    runs: Path,
    scores: Path | None = None,
    accuracy: list[Path],
    partition: list[Path] | None = None,
    samples: Path | None = None,
) -> None:
    """Draw an experiment's accuracy over rounds, and its partitions for the first seed.

    A figure has a path for each format, and one for its caption; only the accuracy figure needs no
    file of the runs except `scores`. `samples` is an output, too: a CSV file of the numbers in the
    figure of partitions, one row per client and class, with their names.
    """
    read, frame = read_runs(runs, scores)
    experiment, frame = for_people(read), frame_for_people(frame, read)
    title = experiment.title
    rows, columns, metric = experiment.rows, experiment.columns, experiment.metric
    caption = f"{title}. {describe_accuracy(frame, rows, columns, read.bands)}"
    drawn = draw_accuracy(frame, rows, columns, metric, looks_of_runs(read), read.bands)
    save_figure(drawn, accuracy, caption)
    if not partition:
        return
    files = find_partitions(experiment.runs)
    histograms = {label: read_histogram(file) for label, file in files.items()}
    names = read_names(experiment.runs)
    seed = experiment.runs[0].settings[SEED]
    caption = f"{title}. Partition over clients. {describe_partition(len(histograms), seed)}"
    save_figure(draw_partition(histograms, names), partition, caption)
    if samples is not None:
        save_text(samples, frame_as_csv(name_partitions(histograms, names)))


def comparison(*, runs: Path, scores: Path | None = None, figure: list[Path]) -> None:
    """Draw the measured and the published accuracy of each cell of `runs` that has both.

    The figure has a path for each format, and one for its caption.
    """
    experiment, frame = read_scores(runs, scores)
    table = summarise(frame, experiment.axes, experiment.metric)
    people = for_people(experiment)
    shown = frame_for_people(table, experiment)
    with fault_of(experiment.title):
        looks = looks_of_runs(experiment)
        drawn = draw_comparison(shown, people.rows, people.columns, looks)
    caption = [
        f"{experiment.title}: measured beside {experiment.published}.",  # prose: ok
        describe_comparison(shown),
        *(line.replace("`", "") for line in experiment.notes),
    ]
    save_figure(drawn, figure, " ".join(caption))


def sweep(*, runs: Path, scores: Path | None = None, figure: list[Path]) -> None:
    """Draw the metric of the last evaluated round over the values of the axis `table.over`.

    The figure has a path for each format, and one for its caption.
    """
    experiment, frame = read_scores(runs, scores)
    people = for_people(experiment)
    if people.over is None:
        raise FedstageError(f"{runs}: over: missing, an axis of the table is required")
    table = summarise(frame, experiment.axes, experiment.metric)
    shown = frame_for_people(table, experiment)
    looks = looks_of_runs(experiment)
    drawn = draw_sweep(shown, people.over, people.rows, people.columns, looks)
    save_figure(drawn, figure, f"{experiment.title}. {describe_sweep(shown)}")
