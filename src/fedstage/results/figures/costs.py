"""Accuracy against bytes of many methods: one point each, named at the edge of its axes."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedstage.results.figures.looks import NONE, Look, looks_of
from fedstage.results.figures.placing import PLACE, line_axis, scale_bytes, side_by_side
from fedstage.results.figures.seeds import Spread, draw_dot, explain_seeds, spread_of
from fedstage.results.figures.style import PAGE, SMALL, Facets, style
from fedstage.results.tables.columns import Row, by_cell
from fedstage.results.tables.labels import head_of, join_labels, show_value
from fedstage.settings.experiments import Bands
from fedstage.settings.scores import Metric

#: The place of a method: bytes of the mean client, and its score over seeds.
Point = tuple[float, Spread]

_LINE = 1.3 * SMALL / 72  # height of a name in inches
_LEAST = 2.2  # inches of height
_APART = 2.5  # ratio of bytes between the scale and points before it
_NARROW = 10.0  # smallest ratio of bytes of the scale
_WIDE = 20.0  # ratio of bytes above which labels at powers of ten are enough
_NAMES = 1.0  # inches that names take, approximately
_LEADER: dict[str, Any] = {"color": "0.75", "linewidth": 0.4, "zorder": 1}


@style()
def draw_costs(
    runs: Sequence[Row],
    rows: Sequence[str],
    columns: Sequence[str],
    metric: Metric,
    given: Mapping[str, Look] = NONE,
    bands: Bands = "interval",
) -> Figure:
    """Draw each method's score over the bytes that a client has moved when training ends.

    `runs` have a run's labelled settings, and its `score` and `bytes`. `given` are looks of methods
    by their labels, and `bands` is what bars show. There are axes for each value of `columns`.
    Methods that send nothing stand before the scale.
    """
    facets = points_of(runs, rows, columns, bands)
    lines = {_name_of(run, rows): show_value(run[line_axis(rows)]) for run in runs}
    of_line = looks_of(lines.values(), given)
    looks = {name: of_line[line] for name, line in lines.items()}
    height = max(_LEAST, _LINE * max(map(len, facets.values())))
    figure = Facets(list(facets), height, across=min(2, len(facets)), width=PAGE)
    moved = [count for points in facets.values() for count, _ in points.values()]
    low, high = _limits(moved)
    silent = low / _APART if 0 in moved else None
    left = silent / _APART if silent else low
    step = (high / left) ** (PLACE / (figure.axes_width - _NAMES))
    placed = [_placed(points, silent, step) for points in facets.values()]
    for axes, points in zip(figure.grid, placed, strict=True):
        scale_bytes(axes, left, low, high, _WIDE, silent)
        for name, (place, spread) in points.items():
            draw_dot(axes, place, spread, looks[name], beside=0)
    for axes, points in zip(figure.grid, placed, strict=True):  # all share their limits
        _name(axes, points, looks, height)
    figure.label_axes("Bytes to and from a client", head_of(metric))
    return figure.figure


def describe_costs(
    runs: Sequence[Row], rows: Sequence[str], columns: Sequence[str], bands: Bands = "interval"
) -> str:
    """Return the caption's text on the points of `draw_costs`."""
    seeds = explain_seeds(
        map(len, by_cell(runs, (*rows, *columns)).values()), curves=False, bands=bands
    )
    silent = any(run["bytes"] == 0 for run in runs)
    text = " Before the scale: methods that send nothing." if silent else ""
    return f"Each point is a method at the end of training.{text} {seeds}"


def points_of(
    runs: Sequence[Row], rows: Sequence[str], columns: Sequence[str], bands: Bands = "interval"
) -> dict[str, dict[str, Point]]:
    """Return the point of each method, by facets and names."""
    found: dict[str, dict[str, Point]] = {}
    for place, same in by_cell(runs, (*columns, *rows)).items():
        facet = join_labels(columns, place[: len(columns)])
        moved = sum(run["bytes"] for run in same) / len(same)
        spread = spread_of([run["score"] for run in same], bands)
        found.setdefault(facet, {})[_name_of(same[0], rows)] = moved, spread
    return found


def _placed(points: Mapping[str, Point], silent: float | None, step: float) -> dict[str, Point]:
    """Return the drawn places of points; points without bytes are side by side at `silent`."""
    none = [name for name, (moved, _) in points.items() if moved == 0]
    places = side_by_side(none, silent, step) if silent else {}
    return {name: (places.get(name, moved), spread) for name, (moved, spread) in points.items()}


def _name_of(run: Row, rows: Sequence[str]) -> str:
    return ", ".join(show_value(run[axis]) for axis in rows)


def dodged(wanted: Sequence[float], step: float, low: float, high: float) -> list[float]:
    """Return places in ascending order that are at least `step` apart, near the wanted ones.

    Places that would overlap are spread around their mean; all lie between `low` and `high` if they
    fit there.
    """
    blocks: list[list[float]] = []
    for value in sorted(wanted):
        blocks.append([value])
        while len(blocks) > 1 and _start(blocks[-1], step, low, high) < (
            _start(blocks[-2], step, low, high) + step * len(blocks[-2])
        ):
            last = blocks.pop()
            blocks[-1] += last
    return [
        _start(block, step, low, high) + step * place
        for block in blocks
        for place in range(len(block))
    ]


def _start(block: Sequence[float], step: float, low: float, high: float) -> float:
    """Return the first of several adjacent places whose middle is the mean of the wanted ones."""
    length = step * (len(block) - 1)
    start = sum(block) / len(block) - length / 2
    return max(low, min(start, high - length))


def _name(
    axes: Axes, points: Mapping[str, Point], looks: Mapping[str, Look], height: float
) -> None:
    """Write the names in a column next to the axes, each with a line to its point."""
    low, high = axes.get_ylim()
    step = (high - low) * min(_LINE / height, 1 / max(1, len(points)))
    order = sorted(points, key=lambda name: points[name][1].mean)
    places = dodged([points[name][1].mean for name in order], step, low + step / 2, high)
    edge = axes.get_xlim()[1]
    for name, place in zip(order, places, strict=True):
        moved, spread = points[name]
        axes.plot([moved, edge], [spread.mean, place], clip_on=False, **_LEADER)
        axes.annotate(
            name,
            (edge, place),
            xytext=(2, 0),
            textcoords="offset points",
            va="center",
            fontsize=SMALL,
            color=looks[name].colour,
            annotation_clip=False,
        )
    axes.set_ylim(low, high)


def _limits(moved: Sequence[float]) -> tuple[float, float]:
    """Return the ends of the scale of bytes, around the bytes that are sent."""
    sent = [count for count in moved if count > 0] or [1.0]
    ratio = max(sent) / min(sent)
    margin = max(ratio**0.08, (_NARROW / ratio) ** 0.5, 4.0**0.08)
    return min(sent) / margin, max(sent) * margin
