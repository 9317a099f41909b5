"""Stage `sweep`: a metric over the values of an axis, as a figure."""

from pathlib import Path

from fedstage.errors import FedstageError
from fedstage.results.figures.style import save_figure
from fedstage.results.figures.sweep import describe_sweep, draw_sweep
from fedstage.results.tables.labels import for_people, frame_for_people
from fedstage.results.tables.runs import read_scores
from fedstage.results.tables.summary import summarise


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
    drawn = draw_sweep(shown, people.over, people.rows, people.columns)
    save_figure(drawn, figure, f"{experiment.title}. {describe_sweep(shown)}")
