"""Stage `figures`: accuracy over rounds, and the partitions of the samples over clients."""

from pathlib import Path

from fedstage.results.figures.accuracy import draw_accuracy
from fedstage.results.figures.partition import (
    draw_partition,
    find_partitions,
    read_histogram,
    read_names,
)
from fedstage.results.figures.style import save_figure
from fedstage.results.runs_file import SEED
from fedstage.results.tables.labels import for_people, frame_for_people
from fedstage.results.tables.runs import read_runs


def figures(*, runs: Path, accuracy: Path, partition: Path) -> None:
    """Draw an experiment's accuracy over rounds, and its partitions for the first seed."""
    read, frame = read_runs(runs)
    experiment, frame = for_people(read), frame_for_people(frame, read)
    title = experiment.title
    rows, columns, metric = experiment.rows, experiment.columns, experiment.metric
    save_figure(draw_accuracy(frame, rows, columns, title, metric), accuracy)
    files = find_partitions(experiment.runs)
    histograms = {label: read_histogram(file) for label, file in files.items()}
    seed = experiment.runs[0].settings[SEED]
    names = read_names(experiment.runs)
    save_figure(draw_partition(histograms, title, seed, names), partition)
