"""Stage `comparison`: measured and published accuracy, as a figure."""

from pathlib import Path

from fedstage.errors import fault_of
from fedstage.results.figures.comparison import describe_comparison, draw_comparison
from fedstage.results.figures.looks import looks_of_runs
from fedstage.results.figures.style import save_figure
from fedstage.results.tables.labels import for_people, frame_for_people
from fedstage.results.tables.runs import read_scores
from fedstage.results.tables.summary import summarise


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
