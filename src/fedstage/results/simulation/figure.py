"""Schedules as Gantt charts: the server's workers and the clients, over seconds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fedstage.plan.jobs import Job
from fedstage.results.figures.style import Colour, Facets, colours_of, style
from fedstage.results.simulation.availability import Window
from fedstage.results.simulation.events import SERVER, Span

_LANE, _MARGIN, _WIDTH, _BESIDE = 0.13, 0.4, 8.0, 1.5  # inches
_BAR = 0.84  # of a lane
_ROOM = 0.012  # of the axes: the width of a bar that fits the number of a round
_MOST_LANES = 12  # with more, not every lane is labelled
_SERVER_COLOURS = {"logits": "0.5", "distillation": "0.15"}
_AWAY = "0.88"


@dataclass(frozen=True)
class Panel:
    """A schedule to draw: its title, jobs, and the intervals in which each client is away."""

    label: str
    spans: Mapping[Job, Span]
    away: Mapping[int, Sequence[Window]]


@style()
def draw_gantt(
    panels: Sequence[Panel], until: float, *, clients: int, servers: int, title: str, note: str
) -> Figure:
    """Draw schedules below one another, with a lane for each client and worker of the server.

    Their common scale of seconds ends at `until`.
    """
    groups = 1 + max(job.group for panel in panels for job in panel.spans)
    colours = list(colours_of([str(group) for group in range(groups)]).values())
    size = (_WIDTH, _MARGIN + _LANE * (clients + servers))
    facets = Facets([panel.label for panel in panels], size, _BESIDE, across=1)
    for axes, panel in zip(facets.grid, panels, strict=True):
        axes.grid(visible=False, axis="y")
        axes.set(xlim=(0, until), ylim=(servers + clients - 0.5, -0.5))
        axes.axhline(servers - 0.5, color="0.3", linewidth=0.6)
        _draw_bars(axes, panel, colours, servers, until)
        _draw_away(axes, panel, servers)
        _label_lanes(axes, clients, servers)
    facets.label_axes("Seconds", "")
    handles = _handles(colours, is_away=any(panel.away.values() for panel in panels))
    return facets.annotate(title, note=note, legend="", handles=handles)


def _draw_bars(
    axes: Axes, panel: Panel, colours: Sequence[Colour], servers: int, until: float
) -> None:
    """Draw each job, with the number of its round where there is room."""
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
            axes.text(
                span.start + width / 2,
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


def _handles(colours: Sequence[Colour], is_away: bool) -> list[Line2D]:
    named: dict[str, Colour | str] = {
        f"training, group {group}": colour for group, colour in enumerate(colours)
    }
    named |= _SERVER_COLOURS
    named |= {"client is away": _AWAY} if is_away else {}
    return [
        Line2D([], [], color=colour, marker="s", linestyle="", label=name)
        for name, colour in named.items()
    ]
