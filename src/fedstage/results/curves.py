"""Curves: accuracy over rounds and over bytes, and what is forgotten over rounds."""

from typing import Any

import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from fedstage.errors import FedstageError
from fedstage.results.labels import human_bytes, metric_head, place_label
from fedstage.results.measures import PARTICIPANTS
from fedstage.results.style import (
    FACET,
    LINE,
    WIDEST,
    Looks,
    bands_of,
    bands_text,
    ends_of,
    facet_size,
    finish,
    looks_of,
    placed,
    reference,
    theme,
)
from fedstage.results.tidy import METHOD, SEED, Header, Tidy, by_round, last_rounds

_FORGETTING = {
    "current": "Current participants (%)",
    "previous": "Previous participants (%)",
    "forget_score": "Forget score (points)",
}
_BASE = "_base"  # a column: the baseline's score, and then the difference from it
_MOST_LEVELS = 8  # horizontal lines of a facet
_MOST_BANDS = 6  # lines of a facet; the bands of more would hide one another


def draw_rounds(scores: Tidy) -> Figure:
    """Draw the metric over rounds: a colour and marker a method, facets of the other axes.

    Methods that are evaluated once are horizontal lines, named in the legend. If all are, or too
    many to be told apart, the last scores are points in rows.
    """
    header, rounds = scores.header, by_round(scores)
    several = rounds.groupby(scores.run, dropna=False)["round"].transform("size") > 1
    frame = placed(rounds, header)
    curves, once = frame[several], frame[~several]
    if curves.empty or once[LINE].nunique() > _MOST_LEVELS:
        return draw_last(scores)
    return _lines(curves, once, "round", header, "Round")


def draw_differences(scores: Tidy) -> Figure:
    """Draw how far the metric of each method is from the baseline's over rounds, paired by seed.

    Raises
    ------
    FedstageError
        If the table has no baseline.
    """
    header, metric = scores.header, scores.header.metric
    if header.baseline is None:
        raise FedstageError(
            f"{header.target}: baseline: missing, a method of the table is required"
        )
    rounds = placed(by_round(scores), header)
    keys = [*(axis for axis in scores.run if axis != METHOD), "round"]
    own = rounds[METHOD].astype(str) == header.baseline
    base = rounds.loc[own, [*keys, metric]].rename(columns={metric: _BASE})
    frame = rounds[~own].merge(base, on=keys)
    frame[_BASE] = frame[metric] - frame[_BASE]
    looks, facets = looks_of(header), list(frame[FACET].unique())
    with theme():
        grid = _relplot(frame, "round", _BASE, looks, header, -100.0, col=FACET,
                        col_order=facets, facet_kws={"sharex": False},
                        **facet_size(len(facets)))  # fmt: skip
        for axes in grid.axes.flat:
            axes.axhline(0, color="0.3", linewidth=0.9, zorder=1)
            axes.xaxis.set_major_locator(_rounds())
        name = place_label([METHOD], {METHOD: header.baseline}, header)
        return finish(grid, "Round", f"Points above {name}", title=_bands_text(frame, header))


def draw_bytes(scores: Tidy, *, last: bool = False) -> Figure:
    """Draw the metric over the bytes that a client has moved; `last` at the end of training only.

    Methods that send nothing are horizontal lines.
    """
    header = scores.header
    rounds = placed(last_rounds(scores) if last else by_round(scores), header)
    # Seeds differ a little where participants do, and a mean needs a common place.
    rounds["bytes"] = rounds.groupby([LINE, FACET, "round"])["bytes"].transform("mean")
    sends = rounds["bytes"] > 0
    ends = rounds.groupby([LINE, FACET])["round"].transform("max")
    silent = rounds[~sends & (rounds["round"] == ends)]
    bars = {"err_style": "bars", "err_kws": {"capsize": 2}} if last else {}
    figure = _lines(rounds[sends], silent, "bytes", header, "Bytes to and from a client", **bars)
    sizes = rounds.loc[sends, "bytes"]
    wide = sizes.max() >= WIDEST * sizes.min()
    for axes in figure.axes:
        axes.set_xscale("log" if wide else "linear")
        axes.xaxis.set_major_locator(LogLocator() if wide else MaxNLocator(3))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: human_bytes(size)))
        axes.xaxis.set_minor_formatter(NullFormatter())
    return figure


def draw_forgetting(scores: Tidy) -> Figure:
    """Draw accuracy on current and previous participants, and their difference, over rounds."""
    header = scores.header
    frame = placed(by_round(scores, role=PARTICIPANTS), header)
    names = [name for name in _FORGETTING if name in frame]  # one round has no previous one
    long = frame.melt([LINE, FACET, SEED, "round"], names, "measure", "value").dropna()
    long["measure"] = long["measure"].map(_FORGETTING)
    looks = looks_of(header)
    with theme():
        grid = _relplot(long, "round", "value", looks, header, col="measure", row=FACET,
                        facet_kws={"sharey": False}, height=2.3, aspect=1.05)  # fmt: skip
        for axes in grid.axes.flat:
            axes.xaxis.set_major_locator(_rounds())
        figure = finish(grid, "Round", "", title=_bands_text(long, header))
        for (row, measure), axes in grid.axes_dict.items():
            axes.set_title(f"{row}\n{measure}".strip())
    return figure


def _lines(
    curves: pd.DataFrame,
    once: pd.DataFrame,
    x: str,
    header: Header,
    label: str,
    **options: Any,
) -> Figure:
    """Draw curves, and the means of what has none as horizontal lines."""
    looks = looks_of(header)
    facets = list(pd.concat([curves, once])[FACET].unique())
    with theme():
        grid = _relplot(curves, x, header.metric, looks, header, col=FACET, col_order=facets,
                        **facet_size(len(facets)), **options)  # fmt: skip
        means = once.groupby([FACET, LINE], sort=False)[header.metric].mean()
        for facet, name, mean in means.reset_index().itertuples(index=False, name=None):
            axes = grid.axes_dict[facet]
            axes.axhline(mean, **reference(name, looks), zorder=1.5)
        for axes in grid.axes.flat if x == "round" else ():
            axes.xaxis.set_major_locator(_rounds())
        named = [Line2D([], [], label=n, **reference(n, looks)) for n in once[LINE].unique()]
        return finish(grid, label, metric_head(header.metric), named, _bands_text(curves, header))


def _relplot(
    frame: pd.DataFrame,
    x: str,
    y: str,
    looks: Looks,
    header: Header,
    least: float = 0.0,
    **options: Any,
) -> Any:
    names = [name for name in looks.palette if name in set(frame[LINE])]
    return sns.relplot(
        frame, x=x, y=y, hue=LINE, style=LINE, hue_order=names, style_order=names, kind="line",
        palette=looks.palette, markers=looks.markers, dashes=looks.dashes,
        errorbar=ends_of(bands_of(frame, header, _MOST_BANDS), least),
        **{"err_kws": {"alpha": 0.15, "linewidth": 0}} | options,
    )  # fmt: skip


def _bands_text(frame: pd.DataFrame, header: Header) -> str:
    return bands_text(bands_of(frame, header, _MOST_BANDS), frame)


def _rounds() -> MaxNLocator:
    return MaxNLocator(6, integer=True, steps=[1, 2, 5, 10])


def draw_last(scores: Tidy) -> Figure:
    """Draw the last scores of all methods as points in rows, with bars over seeds."""
    header, looks = scores.header, looks_of(scores.header)
    frame = placed(last_rounds(scores), header)
    facets, names = frame[FACET].nunique(), [n for n in looks.palette if n in set(frame[LINE])]
    height = 0.9 + 0.22 * len(names)
    size = {"height": height, "aspect": (4.6 if facets == 1 else 3.0) / height}
    with theme():
        grid = sns.catplot(
            frame, x=header.metric, y=LINE, hue=LINE, col=FACET, kind="point", order=names,
            palette=looks.palette, errorbar=ends_of(header.bands), capsize=0.25, legend=False,
            linestyle="none", err_kws={"linewidth": 1.1}, markersize=5,
            **facet_size(facets) | size,
        )  # fmt: skip
        for axes in grid.axes.flat:
            axes.grid(visible=True, axis="both")
        title = bands_text(bands_of(frame, header), frame)
        return finish(grid, metric_head(header.metric), "", title=title)
