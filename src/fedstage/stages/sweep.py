"""Stage `sweep`: a metric over the values of an axis, as a figure."""

from pathlib import Path

from fedstage.errors import FedstageError
from fedstage.results.figures.style import save_figure
from fedstage.results.figures.sweep import draw_sweep
from fedstage.results.tables.labels import for_people, frame_for_people
from fedstage.results.tables.runs import read_scores
from fedstage.results.tables.summary import summarise


def sweep(*, runs: Path, figure: Path) -> None:
    """Draw the metric of the last evaluated round over the values of the axis `table.over`."""
    experiment, frame = read_scores(runs)
    people = for_people(experiment)
    if people.over is None:
        raise FedstageError(f"{runs}: over: missing, an axis of the table is required")
    table = summarise(frame, experiment.axes, experiment.metric)
    drawn = draw_sweep(
        frame_for_people(table, experiment),
        people.over,
        people.rows,
        people.columns,
        experiment.title,
        "Mean over seeds of the last evaluated round; bars: ± 1 standard deviation.",
    )
    save_figure(drawn, figure)
