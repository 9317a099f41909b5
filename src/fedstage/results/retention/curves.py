"""Accuracy on the current and on the previous participants' samples, and the forget score.

Figure 5 of "Edge Bias in Federated Learning and its Solution by Buffered Knowledge Distillation".
"""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedstage.experiments.runs_file import SEED
from fedstage.results.figures.looks import NONE, Look, line_handle, looks_of
from fedstage.results.figures.placing import FACET, LINE, line_axis, placed, title_of_lines
from fedstage.results.figures.rounds import round_ticks
from fedstage.results.figures.seeds import PERCENTAGES, draw_curve, explain_seeds
from fedstage.results.figures.style import Facets, style
from fedstage.results.retention.table import RunRetention
from fedstage.settings.experiments import Bands

#: Columns of measures, and the labels of their axes.
_MEASURES = {
    "current": "Current participants",
    "previous": "Previous participants",
    "forget_score": "Forget score",
}
_MARGIN = 2.0  # percent that markers at 0 and 100 take
_HEIGHT = 1.55  # inches


@style()
def draw_curves(
    runs: Sequence[RunRetention],
    rows: Sequence[str],
    columns: Sequence[str],
    given: Mapping[str, Look] = NONE,
    bands: Bands = "interval",
) -> Figure:
    """Draw three measures over rounds, side by side.

    Lines are the values of `line_axis(rows)`; each combination of the table's other axes is a row
    of the figure. `given` are looks of lines by their labels, and `bands` is what bands show.
    """
    axis = line_axis(rows)
    frame = frame_of(runs, axis, [*rows, *columns])
    facets = list(frame[FACET].unique())
    looks = looks_of(frame[LINE].unique(), given)
    handles = [line_handle(name, look) for name, look in looks.items()]
    labels = [f"{measure}\n{facet}".strip() for facet in facets for measure in _MEASURES.values()]
    drawn = Facets(
        labels, _HEIGHT, handles, title_of_lines(axis), across=len(_MEASURES), share_y="col"
    )
    places = [(facet, measure) for facet in facets for measure in _MEASURES]
    for axes, (facet, measure) in zip(drawn.grid, places, strict=True):
        _draw(axes, frame[frame[FACET] == facet], measure, looks, bands)
    _label(drawn, (int(frame["round"].min()), int(frame["round"].max())))
    return drawn.figure


def describe_curves(runs: Sequence[RunRetention], bands: Bands = "interval") -> str:
    """Return the caption's text on the lines of `draw_curves`."""
    seeds = len({run.settings[SEED] for run in runs})
    return (
        "Accuracy after a round on the training samples of its participants (current), and of "
        "those of the round before (previous). "  # prose: ok
        "The forget score is the difference, in percentage points; lower is better. "
        f"{explain_seeds([seeds], curves=True, bands=bands)}"
    )


def frame_of(runs: Sequence[RunRetention], line: str, axes: Sequence[str]) -> pd.DataFrame:
    """Return one row per run and round: its line, facet and seed, and the measures as numbers."""
    rows = [
        {axis: run.settings[axis] for axis in (*axes, SEED)}
        | {name: row[name] for name in ("round", *_MEASURES)}
        for run in runs
        for row in run.rounds
    ]
    return placed(pd.DataFrame(rows), line, axes).astype(dict.fromkeys(_MEASURES, "float64"))


def _draw(
    axes: Axes, frame: pd.DataFrame, measure: str, looks: Mapping[str, Look], bands: Bands
) -> None:
    known, names = frame.dropna(subset=[measure]), list(looks)
    within = PERCENTAGES
    if measure == "forget_score":
        within = -PERCENTAGES[1], PERCENTAGES[1]
        axes.axhline(0, color="0.6", linewidth=0.8, zorder=1)
    for name, same in known.groupby(LINE, sort=False):
        turn = (names.index(str(name)), len(names))
        draw_curve(axes, same, "round", measure, looks[str(name)], turn, bands, within)


def _label(drawn: Facets, rounds: tuple[int, int]) -> None:
    """Label all axes, and give both accuracies the same scale."""
    drawn.label_axes("Round", "Accuracy (%)")
    first, second = drawn.grid[:2]
    first.set_xticks(round_ticks(*rounds))  # the scale is shared
    ends = [end for axes in (first, second) if axes.has_data() for end in axes.get_ylim()]
    for axes in (first, second) if ends else ():  # bands may exceed the range of accuracies
        axes.set_ylim(max(min(ends), -_MARGIN), min(max(ends), 100 + _MARGIN))
    for axes in drawn.grid[2::3]:
        axes.set_ylabel("Percentage points")
