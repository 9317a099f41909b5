"""Schedules as Gantt charts: the server's workers and the clients, over seconds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fedstage.plan.jobs import Job
from fedstage.results.figures.style import PAGE, SMALL, Facets, style
from fedstage.results.simulation.availability import Window
from fedstage.results.simulation.events import SERVER, Span

Colour = tuple[float, float, float]
_LANE, _HIGHEST = 0.125, 6.0  # inches: of a lane, and of all lanes together
_BAR = 0.84  # of a lane
_DIGIT = 0.68 / 72  # inches a digit takes, for each point of its font
_MOST_LANES = 12  # with more, not every lane is labelled
_SERVER_COLOURS = {"logits": to_rgb("0.6"), "distillation": to_rgb("0.1")}
_AWAY = to_rgb("0.88")
_BRIGHT = 0.45  # luminance above which digits are black


@dataclass(frozen=True)
class Panel:
    """A schedule to draw: its label, its jobs, and the intervals in which each client is away."""

    label: str
    spans: Mapping[Job, Span]
    away: Mapping[int, Sequence[Window]]


@style()
def draw_gantt(panels: Sequence[Panel], until: float, *, clients: int, servers: int) -> Figure:
    """Draw schedules below one another, with a lane for each client and worker of the server.

    Their common scale of seconds ends at `until`.
    """
    groups = 1 + max(job.group for panel in panels for job in panel.spans)
    colours = group_colours(groups)
    handles = _handles(colours, panels)
    lanes = clients + servers
    lane = min(_LANE, _HIGHEST / lanes / len(panels))
    labels = [panel.label for panel in panels]
    facets = Facets(labels, lane * lanes, handles, across=1, width=PAGE)
    an_inch = until / facets.axes_width
    for axes, panel in zip(facets.grid, panels, strict=True):
        axes.grid(visible=False, axis="y")
        axes.set(xlim=(0, until), ylim=(lanes - 0.5, -0.5))
        axes.axhline(servers - 0.5, color="0.3", linewidth=0.6)
        _draw_bars(axes, panel, colours, servers, an_inch if lane == _LANE else None)
        _draw_away(axes, panel, servers)
        _label_lanes(axes, clients, servers, lane)
    facets.label_axes("Seconds", "")
    return facets.figure


def group_colours(groups: int) -> list[Colour]:
    """Return a colour for each group, from dark to bright, so that they differ in greyscale."""
    return [tuple(colour) for colour in sns.color_palette("viridis", groups + 1)[:groups]]


def _draw_bars(
    axes: Axes, panel: Panel, colours: Sequence[Colour], servers: int, an_inch: float | None
) -> None:
    """Draw each job, with the number of its round where there is room.

    `an_inch` is one inch in seconds, None if lanes are lower than digits.
    """
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
        text = str(job.round)
        if an_inch is not None and width > (len(text) + 0.4) * SMALL * _DIGIT * an_inch:
            axes.text(
                span.start + width / 2,
                lane,
                text,
                ha="center",
                va="center_baseline",
                fontsize=SMALL,
                color="black" if luminance(colour) > _BRIGHT else "white",
                clip_on=True,
            )


def luminance(colour: Colour) -> float:
    """Return how bright a colour is in greyscale, from 0 to 1 (ITU-R BT.601)."""
    red, green, blue = colour
    return 0.299 * red + 0.587 * green + 0.114 * blue


def _draw_away(axes: Axes, panel: Panel, servers: int) -> None:
    """Draw the intervals in which clients are away over the bars, which pause in them."""
    for client, intervals in panel.away.items():
        lengths = [(begin, end - begin) for begin, end in intervals]
        lane = (servers + client - 0.5, 1.0)
        axes.broken_barh(lengths, lane, facecolor=_AWAY, alpha=0.75, linewidth=0, zorder=3)


def _label_lanes(axes: Axes, clients: int, servers: int, lane: float) -> None:
    """Label the server and clients, as many of them as labels fit next to their lanes."""
    fit = 1 if clients <= _MOST_LANES else 5
    high, server = SMALL * 1.2 / 72, (servers - 1) / 2
    while fit * lane < high:
        fit *= 2
    shown = [
        client for client in range(0, clients, fit) if (servers + client - server) * lane > high
    ]
    ticks = [server, *(servers + client for client in shown)]
    axes.set_yticks(ticks, ["server", *(f"client {client}" for client in shown)])


def _handles(colours: Sequence[Colour], panels: Sequence[Panel]) -> list[Line2D]:
    """Return the legend for the contents of the panels; a single group needs no number."""
    many = len(colours) > 1
    named = {
        f"training{f', group {i}' if many else ''}": colour for i, colour in enumerate(colours)
    }
    stages = {job.stage for panel in panels for job in panel.spans}
    named |= {stage: colour for stage, colour in _SERVER_COLOURS.items() if stage in stages}
    if any(away for panel in panels for away in panel.away.values()):
        named["client is away"] = _AWAY
    return [
        Line2D([], [], color=colour, marker="s", markersize=5, linestyle="", label=name)
        for name, colour in named.items()
    ]
