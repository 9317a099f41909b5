"""Stage `figures`: accuracy over rounds, and how the samples are divided over the clients."""

from pathlib import Path

from fedstage.results.figures.accuracy import draw_accuracy
from fedstage.results.figures.partition import draw_partition, find_partitions, read_histogram
from fedstage.results.figures.style import save_figure
from fedstage.results.tables.runs import SEED, read_runs


def figures(*, runs: Path, accuracy: Path, partition: Path) -> None:
    """Draw an experiment's accuracy over rounds, and its partitions for the first seed.

    Parameters
    ----------
    runs : Path
        JSON file of the experiment's runs: settings, metrics and partition of each.
    accuracy, partition : Path
        The figures, PNG or SVG by suffix.

    Raises
    ------
    FedstageError
        If a file is missing, damaged or empty, an accuracy is not a number, two runs have the same
        place and seed, or a suffix is neither ``.png`` nor ``.svg``.
    """
    experiment, frame = read_runs(runs)
    title = experiment.title
    rows, columns, metric = experiment.rows, experiment.columns, experiment.metric
    save_figure(draw_accuracy(frame, rows, columns, title, metric), accuracy)
    files = find_partitions(experiment.runs)
    histograms = {label: read_histogram(file) for label, file in files.items()}
    seed = experiment.runs[0].settings[SEED]
    save_figure(draw_partition(histograms, title, seed), partition)
