"""Accuracy on the current and on the previous participants' samples, and the forget score.

Figure 5 of "Edge Bias in Federated Learning and its Solution by Buffered Knowledge Distillation".
"""

from collections.abc import Sequence
from typing import Any

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from fedstage.results.figures.accuracy import LINE_WIDTH, line_axis, markers_of, varying_axes
from fedstage.results.figures.style import BAND, Colour, Facets, colours_of, style
from fedstage.results.retention.runs import RunRetention
from fedstage.results.runs_file import SEED
from fedstage.results.tables.labels import join_points, show_value

#: Columns of measures, and the titles of their axes.
_MEASURES = {
    "current": "Current participants",
    "previous": "Previous participants",
    "forget_score": "Forget score",
}
_MARGIN = 2.0  # percent that markers of 0 and 100 take
_LINE, _FACET = "_line", "_facet"


@style()
def draw_curves(
    runs: Sequence[RunRetention], rows: Sequence[str], columns: Sequence[str], title: str
) -> Figure:
    """Draw three measures over rounds, side by side.

    Of the table's axes `line_axis(rows)` has the lines; each point of the others is a row of axes.
    """
    frame = frame_of(runs, line_axis(rows), [*rows, *columns])
    facets = list(frame[_FACET].unique())
    palette = colours_of(list(frame[_LINE].unique()))
    markers = markers_of(frame, palette)
    labels = [f"{measure}\n{facet}".strip() for facet in facets for measure in _MEASURES.values()]
    beside = 0.7 + 0.09 * max(map(len, palette))
    drawn = Facets(labels, (3.1, 2.5), beside, across=len(_MEASURES), common=False)
    places = [(facet, measure) for facet in facets for measure in _MEASURES]
    for axes, (facet, measure) in zip(drawn.grid, places, strict=True):
        _draw(axes, frame[frame[_FACET] == facet], measure, palette, markers)
    _label(drawn)
    handles = [_handle(line, colour, markers[line]) for line, colour in palette.items()]
    return drawn.annotate(title, note=_note(frame), legend=line_axis(rows), handles=handles)


def frame_of(runs: Sequence[RunRetention], line: str, axes: Sequence[str]) -> pd.DataFrame:
    """Return a row a run and round: its line, facet and seed, and the measures as numbers."""
    places = pd.DataFrame([{axis: run.settings[axis] for axis in (*axes, SEED)} for run in runs])
    varying = [axis for axis in varying_axes(places, axes) if axis != line]
    texts = zip(map(show_value, places[line]), join_points(places, varying), strict=True)
    return pd.DataFrame(
        [
            {_LINE: name, _FACET: facet, SEED: run.settings[SEED], "round": row["round"]}
            | {measure: row[measure] for measure in _MEASURES}
            for run, (name, facet) in zip(runs, texts, strict=True)
            for row in run.rounds
        ]
    ).astype(dict.fromkeys(_MEASURES, "float64"))


def _draw(
    axes: Axes,
    frame: pd.DataFrame,
    measure: str,
    palette: dict[str, Colour],
    markers: dict[str, str],
) -> None:
    known = frame.dropna(subset=[measure])
    if measure == "forget_score":
        axes.axhline(0, color="0.6", linewidth=0.8, zorder=1)
    if known.empty:
        return
    sns.lineplot(
        known,
        x="round",
        y=measure,
        hue=_LINE,
        palette=palette,
        style=_LINE,
        dashes=False,
        markers=markers,
        errorbar="sd" if known[SEED].nunique() > 1 else None,
        err_kws=BAND,
        linewidth=LINE_WIDTH,
        legend=False,
        ax=axes,
    )


def _label(drawn: Facets) -> None:
    """Label all axes, and give both accuracies the same scale."""
    drawn.label_axes("Round", "Accuracy (%)")
    first, second = drawn.grid[:2]
    first.xaxis.set_major_locator(MaxNLocator(integer=True))  # the scale is shared
    ends = [end for axes in (first, second) if axes.has_data() for end in axes.get_ylim()]
    for axes in (first, second) if ends else ():  # bands may be beyond what accuracies can be
        axes.set_ylim(max(min(ends), -_MARGIN), min(max(ends), 100 + _MARGIN))
    for axes in drawn.grid[2::3]:
        axes.set_ylabel("Percentage points")


def _handle(line: str, colour: Colour, marker: str) -> Line2D:
    look: dict[str, Any] = {"marker": marker, "markeredgecolor": "white"}
    return Line2D([], [], color=colour, linewidth=LINE_WIDTH, label=line, **look)


def _note(frame: pd.DataFrame) -> str:
    seeds = frame[SEED].nunique()
    lines = (
        "A single seed."
        if seeds == 1
        else (f"Lines: mean over {seeds} seeds; bands: ± 1 standard deviation.")
    )
    return (
        "Accuracy after a round on the training samples of its participants (current), and of "
        "those of the round before (previous). The forget score is the difference, lower is "
        f"better. {lines}"
    )
