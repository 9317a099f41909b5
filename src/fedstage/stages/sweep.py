"""Stage `sweep`: a metric over the values of an axis, as a figure."""

from pathlib import Path

from fedstage.errors import FedstageError
from fedstage.results.figures.style import save_figure
from fedstage.results.figures.sweep import draw_sweep
from fedstage.results.tables.runs import read_scores
from fedstage.results.tables.summary import summarise


def sweep(*, runs: Path, figure: Path) -> None:
    """Draw the metric of the last evaluated round over the values of the axis `table.over`.

    Parameters
    ----------
    runs : Path
        JSON file of the experiment's runs: settings, metrics, the table's axes.
    figure : Path
        The figure, PNG or SVG by suffix.

    Raises
    ------
    FedstageError
        If a file is missing, damaged or empty, or the experiment names no axis.
    """
    experiment, frame = read_scores(runs)
    if experiment.over is None:
        raise FedstageError(f"{runs}: over: missing, an axis of the table is required")
    drawn = draw_sweep(
        summarise(frame, experiment.axes, experiment.metric),
        experiment.over,
        experiment.rows,
        experiment.columns,
        experiment.title,
        "Mean over seeds of the last evaluated round; bars: ± 1 standard deviation.",
    )
    save_figure(drawn, figure)
