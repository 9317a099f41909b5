"""Stage `comparison`: measured against published accuracy, as a figure."""

from pathlib import Path

from fedstage.results.figures.comparison import draw_comparison
from fedstage.results.figures.style import save_figure
from fedstage.results.tables.runs import read_scores
from fedstage.results.tables.summary import summarise


def comparison(*, runs: Path, figure: Path) -> None:
    """Draw the measured over the published accuracy of each cell that the paper has a number for.

    Parameters
    ----------
    runs : Path
        JSON file of the experiment's runs: settings, metrics and published number of each.
    figure : Path
        The figure, PNG or SVG by suffix.

    Raises
    ------
    FedstageError
        If a file is missing, damaged or empty, or no cell has a published number.
    """
    experiment, frame = read_scores(runs)
    table = summarise(frame, experiment.axes, experiment.metric)
    note = "Bars: ± 1 standard deviation over seeds; across, as the paper reports it."
    drawn = draw_comparison(
        table,
        experiment.rows,
        experiment.columns,
        f"{experiment.title}: measured against {experiment.published}",
        " ".join([note, *(line.replace("`", "") for line in experiment.notes)]),
    )
    save_figure(drawn, figure)
