"""Stage `comparison`: measured against published accuracy, as a figure."""

from pathlib import Path

from fedstage.results.figures.comparison import draw_comparison
from fedstage.results.figures.style import save_figure
from fedstage.results.tables.labels import for_people, frame_for_people
from fedstage.results.tables.runs import read_scores
from fedstage.results.tables.summary import summarise


def comparison(*, runs: Path, figure: Path) -> None:
    """Draw the measured over the published accuracy of each cell of `runs` that has both."""
    experiment, frame = read_scores(runs)
    table = summarise(frame, experiment.axes, experiment.metric)
    people = for_people(experiment)
    note = "Bars: ± 1 standard deviation over seeds; across, as the paper reports it."
    drawn = draw_comparison(
        frame_for_people(table, experiment),
        people.rows,
        people.columns,
        f"{experiment.title}: measured against {experiment.published}",
        " ".join([note, *(line.replace("`", "") for line in experiment.notes)]),
    )
    save_figure(drawn, figure)
