"""Points: measured and published, an axis swept, and the partition as a map."""

from collections.abc import Callable, Mapping, Sequence

import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from fedstage.errors import FedstageError
from fedstage.results.labels import axis_label, metric_head, show_value
from fedstage.results.style import (
    FACET,
    LINE,
    WIDEST,
    bands_of,
    bands_text,
    ends_of,
    facet_size,
    finish,
    looks_of,
    placed,
    theme,
)
from fedstage.results.table import PAPER
from fedstage.results.tidy import Tidy, cell_numbers, last_rounds

_WORDS = 30  # characters of labels that fit side by side


def draw_published(scores: Tidy) -> Figure:
    """Draw the measured and the published number of each cell that has both, side by side.

    Each has a scale of its own unless the setting is the paper's: only orders may be compared.

    Raises
    ------
    FedstageError
        If no cell has a published number.
    """
    header, looks = scores.header, looks_of(scores.header)
    last = placed(last_rounds(scores), header)
    numbers = [header.cells[i].published.get(header.metric) for i in cell_numbers(header, last)]
    last["_number"] = pd.Series(numbers, index=last.index, dtype=object)
    last = last[[number is not None for number in numbers]]
    if last.empty:
        raise FedstageError(f"{header.title}: no cell has a published number")
    measured = last[[LINE, FACET]].assign(value=last[header.metric], of="measured")
    cells = last.drop_duplicates([LINE, FACET]).to_dict("records")
    # Two values that have the printed mean and deviation.
    printed = [
        {LINE: cell[LINE], FACET: cell[FACET], "of": "published", "value": value}
        for cell in cells
        for aside in [(cell["_number"].std or 0.0) / 2**0.5]
        for value in (cell["_number"].value - aside, cell["_number"].value + aside)
    ]
    frame = pd.concat([pd.DataFrame(printed), measured], ignore_index=True)
    names = [name for name in looks.palette if name in set(last[LINE])]
    height = 0.9 + 0.22 * len(names)
    with theme():
        grid = sns.catplot(
            frame, x="value", y=LINE, hue=LINE, col="of", row=FACET, kind="point", order=names,
            palette=looks.palette, errorbar="sd", capsize=0.25, linestyle="none", legend=False,
            sharex=header.scale == PAPER, height=height, aspect=3.0 / height, markersize=5,
            err_kws={"linewidth": 1.1},
        )  # fmt: skip
        apart = ":\n" if max(map(len, map("".join, grid.axes_dict))) > _WORDS else ": "
        titles = {key: apart.join(filter(None, key)) for key in grid.axes_dict}
        title = "mean and standard deviation over seeds"
        figure = finish(grid, metric_head(header.metric), "", title=title)
        for key, axes in grid.axes_dict.items():
            axes.set_title(titles[key])
            axes.grid(visible=True, axis="both")
    return figure


def draw_ensembles(scores: Tidy) -> Figure:
    """Draw what ensembles gain over how much their members disagree: one point per seed.

    The gain is the accuracy less the mean of the members' accuracies, after the last round.

    Raises
    ------
    FedstageError
        If the scores are of an earlier version, which did not measure it.
    """
    header, looks = scores.header, looks_of(scores.header)
    last = placed(last_rounds(scores), header)
    if "disagreement" not in last:
        raise FedstageError(f"{header.target}: disagreement: not measured; no run is an ensemble")
    last = last[last["disagreement"].notna()]
    names = [name for name in looks.palette if name in set(last[LINE])]
    with theme():
        grid = sns.relplot(
            last, x="disagreement", y="ensemble_gain", hue=LINE, style=LINE, hue_order=names,
            style_order=names, col=FACET, palette=looks.palette, markers=looks.markers, s=30,
            **facet_size(last[FACET].nunique()),
        )  # fmt: skip
        for axes in grid.axes.flat:
            axes.axhline(0, color="0.6", linewidth=0.8, zorder=0)
        title = "one point per seed, after the last round"
        return finish(grid, "Members disagree (%)", "Ensemble gain (points)", title=title)


def draw_sweep(scores: Tidy) -> Figure:
    """Draw the metric over the axis `over`: one line per method, facets of the other axes.

    Numbers are placed by size, on a logarithmic scale if they are positive and span a factor of ten
    or more. Other values are side by side.
    """
    header = scores.header
    if header.over is None:
        raise FedstageError(f"{header.target}: over: missing, an axis of the table is required")
    looks = looks_of(header, [header.over])
    last = placed(last_rounds(scores), header, but=[header.over])
    values = last[header.over]
    numeric = bool(pd.api.types.is_numeric_dtype(values) and values.notna().all())
    last["_over"] = values.astype(float) if numeric else [show_value(value) for value in values]
    names = [name for name in looks.palette if name in set(last[LINE])]
    with theme():
        grid = sns.relplot(
            last, x="_over", y=header.metric, hue=LINE, style=LINE, hue_order=names, kind="line",
            style_order=names, col=FACET, palette=looks.palette, markers=looks.markers,
            dashes=looks.dashes, errorbar=ends_of(header.bands), err_style="bars",
            err_kws={"capsize": 2}, sort=numeric, **facet_size(last[FACET].nunique()),
        )  # fmt: skip
        ticks = sorted(last["_over"].unique()) if numeric else []
        wide = numeric and ticks[0] > 0 and ticks[-1] >= WIDEST * ticks[0]
        for axes in grid.axes.flat if numeric else ():
            axes.set_xscale("log" if wide else "linear")
            axes.set_xticks(ticks, [show_value(tick) for tick in ticks], minor=False)
            axes.minorticks_off()
        words = [] if numeric else list(last["_over"].unique())
        if sum(map(len, words)) > _WORDS:
            for axes in grid.axes.flat:
                axes.tick_params(axis="x", labelrotation=90)
        title = bands_text(bands_of(last, header), last)
        return finish(grid, axis_label(header.over), metric_head(header.metric), title=title)


def draw_partition(partitions: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw the `partition_counts` of partitions by their names, a map a partition."""
    most = max(int(table.to_numpy().max()) for table in partitions.values())
    across = max(table.shape[1] for table in partitions.values())
    down = max(table.shape[0] for table in partitions.values())
    wide, high = min(6.9, 2.0 + 0.2 * across), min(4.0, max(1.8, 0.9 + 0.16 * down))
    with theme():
        figure = Figure(figsize=(wide, high * len(partitions)), layout="constrained")
        grid = figure.subplots(len(partitions), 1, squeeze=False)[:, 0]
        for axes, (name, table) in zip(grid, partitions.items(), strict=True):
            sns.heatmap(
                table, ax=axes, vmin=0, vmax=most, cmap="Blues", linewidths=0.3 * (across <= 60),
                cbar_kws={"label": "Samples"},
            )  # fmt: skip
            axes.set(title=name, xlabel="Client", ylabel="Class")
            axes.tick_params(axis="y", labelrotation=0)
    return figure


def partition_counts(
    samples: pd.DataFrame,
    clients: Sequence[str] | None = None,
    classes: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Return how many samples of each class each client has, one row per class.

    Parameters
    ----------
    samples : DataFrame
        Columns `client`, `label` and `samples`, which are added up.
    clients, classes : sequence of str, optional
        Their names; by default numbers.
    """
    counts = samples.pivot_table("samples", "label", "client", "sum", fill_value=0)
    return counts.rename(index=_names(classes), columns=_names(clients))


def _names(names: Sequence[str] | None) -> Callable[[int], str]:
    """Return what names a number; the one behind the last client is the server."""
    return lambda i: str(i) if names is None else names[i] if i < len(names) else "server"
