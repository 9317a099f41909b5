"""A schedule as a Gantt chart: the server's workers and the clients, over seconds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fedstage.plan.jobs import Job
from fedstage.results.figures.style import (
    facet_grid,
    set_axis_labels,
    set_legend,
    set_note,
    set_title,
    style,
)
from fedstage.results.simulation.availability import Window
from fedstage.results.simulation.events import SERVER, Span

_LANE, _MARGIN, _WIDTH, _BESIDE = 0.13, 0.4, 8.0, 1.5  # inches
_BAR = 0.84  # of a lane
_ROOM = 0.012  # of the axes: bars that the number of a round fits into
_MOST_LANES = 12  # lanes that are all labelled
_SERVER_COLOURS = {"logits": "0.5", "distillation": "0.15"}
_AWAY = "0.88"


@dataclass(frozen=True)
class Panel:
    """A schedule to draw.

    Attributes
    ----------
    label : str
        Stands above it.
    spans : mapping
        The jobs that are drawn, on clients and the server.
    away : mapping
        The intervals in which a client is not available.
    """

    label: str
    spans: Mapping[Job, Span]
    away: Mapping[int, Sequence[Window]]


def draw_gantt(
    panels: Sequence[Panel], until: float, *, clients: int, servers: int, title: str, note: str
) -> Figure:
    """Draw schedules below one another, on one scale of seconds.

    Parameters
    ----------
    until : float
        Where the scale ends.
    clients, servers : int
        Number of clients, and of the server's workers: each has a lane.
    title, note : str
        What stands above and below.
    """
    groups = 1 + max(job.group for panel in panels for job in panel.spans)
    colours = _group_colours(groups)
    with style():
        size = (_WIDTH, _MARGIN + _LANE * (clients + servers))
        figure, grid = facet_grid(len(panels), 1, size, _BESIDE)
        for axes, panel in zip(grid, panels, strict=True):
            axes.set_title(panel.label)
            axes.grid(visible=False, axis="y")
            axes.set(xlim=(0, until), ylim=(servers + clients - 0.5, -0.5))
            axes.axhline(servers - 0.5, color="0.3", linewidth=0.6)
            _draw_bars(axes, panel, colours, servers, until)
            _draw_away(axes, panel, servers)
            _label_lanes(axes, clients, servers)
        set_axis_labels(grid, 1, "Seconds", "")
        is_away = any(panel.away.values() for panel in panels)
        set_legend(figure, "", _handles(colours, is_away))
        set_title(figure, title)
        set_note(figure, note)
    return figure


def _group_colours(groups: int) -> list[str]:
    most = len(sns.color_palette("colorblind"))
    name = "colorblind" if groups <= most else "husl"
    return [to_hex(colour) for colour in sns.color_palette(name, groups)]


def _draw_bars(
    axes: Axes, panel: Panel, colours: Sequence[str], servers: int, until: float
) -> None:
    """Draw each job, and in it its round where there is room."""
    for job, span in panel.spans.items():
        lane = span.worker if span.place == SERVER else servers + span.place
        colour = _SERVER_COLOURS.get(job.stage, colours[job.group])
        width = span.end - span.start
        axes.broken_barh(
            [(span.start, width)],
            (lane - _BAR / 2, _BAR),
            facecolor=colour,
            edgecolor="white",
            linewidth=0.3,
        )
        if width > _ROOM * until:
            middle = span.start + width / 2
            axes.text(
                middle,
                lane,
                str(job.round),
                ha="center",
                va="center_baseline",
                fontsize=5.5,
                color="white",
                clip_on=True,
            )


def _draw_away(axes: Axes, panel: Panel, servers: int) -> None:
    """Draw the intervals in which clients are away over the bars, which pause in them."""
    for client, intervals in panel.away.items():
        lengths = [(begin, end - begin) for begin, end in intervals]
        lane = (servers + client - 0.5, 1.0)
        axes.broken_barh(lengths, lane, facecolor=_AWAY, alpha=0.75, linewidth=0, zorder=3)


def _label_lanes(axes: Axes, clients: int, servers: int) -> None:
    step = 1 if clients <= _MOST_LANES else 5
    shown = range(0, clients, step)
    ticks = [(servers - 1) / 2, *(servers + client for client in shown)]
    axes.set_yticks(ticks, ["server", *(f"client {client}" for client in shown)], fontsize=7)


def _handles(colours: Sequence[str], is_away: bool) -> list[Line2D]:
    named = {f"training, group {group}": colour for group, colour in enumerate(colours)}
    named |= _SERVER_COLOURS | ({"client is away": _AWAY} if is_away else {})
    return [
        Line2D([], [], color=colour, marker="s", linestyle="", label=name)
        for name, colour in named.items()
    ]
