"""Tables of what clients send and receive, for people."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from fedstage.experiments.goals import by_value
from fedstage.results.communication.runs import Reached, RunTraffic
from fedstage.results.communication.table import MIB
from fedstage.results.tables.columns import Column, TextTable, average, text_table, with_deviation
from fedstage.results.tables.labels import (
    METRICS,
    NOTHING,
    head_of,
    human_bytes,
    human_count,
    join_labels,
    show_range,
    show_value,
)
from fedstage.settings.experiments import is_fixed
from fedstage.settings.scores import Metric, Reach

# --- parameters until an accuracy -----------------------------------------------------------------
#
# The table of Fed-ET's C_acc(x): parameters that all participants move up to an accuracy.
#
# Cho et al. 2022, Section 4 and Table 3: one row per method, one column per data set.

NEVER = "not reached"


def goal_table(
    runs: Sequence[RunTraffic], rows: Sequence[str], columns: Sequence[str], notes: Sequence[str]
) -> TextTable:
    """Return one line per value of the row axes, with one cell per value of the column axes.

    A cell is the mean over the seeds that reach the accuracy, with their number unless all do.
    Published numbers stand next to the cells of columns that have any.
    """
    cells: dict[tuple[str, ...], dict[str, list[RunTraffic]]] = {}
    compared: dict[str, bool] = {}  # whether a column has published numbers
    for run in runs:
        place = tuple(show_value(run.settings[axis]) for axis in rows)
        label = join_labels(columns, [run.settings[axis] for axis in columns])
        cells.setdefault(place, {}).setdefault(label, []).append(run)
        has = run.published_params is not None
        compared[label] = compared.get(label, False) or has
    heads, lines = [*rows], [[*place] for place in cells]
    for label, published in compared.items():
        column = [by_label.get(label, []) for by_label in cells.values()]
        heads.append(label or "Parameters")
        for line, seeds in zip(lines, column, strict=True):
            line.append(_measured(seeds))
        if published:
            heads.append(f"{label}: published" if label else "Published")
            for line, seeds in zip(lines, column, strict=True):
                line.append(_published(seeds))
    return TextTable(heads, lines, len(rows), notes)


def _published(seeds: Sequence[RunTraffic]) -> str:
    number = seeds[0].published_params if seeds else None
    return NOTHING if number is None else human_count(number)


def _measured(seeds: Sequence[RunTraffic]) -> str:
    """Write the mean of what seeds have sent; not reaching the accuracy is also a result."""
    reached = [run.reached.moved.params for run in seeds if run.reached is not None]
    if not seeds:
        return NOTHING
    if not reached:
        return NEVER
    text = human_count(fmean(reached))
    return text if len(reached) == len(seeds) else f"{text} ({len(reached)} of {len(seeds)} seeds)"


# --- bytes of one client --------------------------------------------------------------------------


def _mib(size: float) -> str:
    return f"{size:.2f}" if size >= 1 else f"{size:.2g}"


def _until(seeds: Sequence[Reached]) -> str:
    """Write the bytes until a round of each seed, and the round if there are any."""
    text = _BYTES([one.moved.both for one in seeds])
    rounds = [one.round for one in seeds]
    return f"{text} (round {show_range(rounds)})" if any(rounds) else text


def _to_best(seeds: Sequence[Reached]) -> str:
    """Write the bytes until the best round of each seed, and its score."""
    return f"{_until(seeds)}: {_SCORE([one.score for one in seeds])}" if seeds else NOTHING


def _to_goal(seeds: Sequence[Reached | None]) -> str:
    """Write the bytes until a goal is reached, and how many seeds reach it unless all do."""
    reached = [one for one in seeds if one is not None]
    if not reached:
        return NEVER if seeds else NOTHING
    share = "" if len(reached) == len(seeds) else f", {len(reached)} of {len(seeds)} seeds"
    return f"{_until(reached)}{share}"


_BYTES = average(lambda count: human_bytes(round(count)))
_SCORE = with_deviation()
_COLUMNS = (
    Column("rounds", "Rounds",
        "in which anything travels, of a federated method or of an aggregator's training.",
        show_range),
    Column("up_per_round", "Upload per round",
        "bytes that the mean client sends in a round: all participants' over the number of clients "
        "(1 kB = 1000 B).", _BYTES),
    Column("down_per_round", "Download per round", "bytes that it receives.", _BYTES),
    Column("once", "Outside of rounds",
        "bytes that it sends and receives once, such as the models of a one-shot method.", _BYTES),
    Column("up", "Upload", "bytes that it sends until training ends.", _BYTES),
    Column("down", "Download", "bytes that it receives until training ends.", _BYTES),
    Column("both", "Both", "the sum of these two.", _BYTES),
    Column("params", "Parameters",
        "numbers of 32 bits that all participants together send and receive, their bytes / 4: "
        "weights and whatever goes with them. Compressed messages count by their bytes too.",
        average(human_count)),
    Column("times_one_shot", "Times one-shot",
        "that sum over one model of a client up and one down, in fp32: one unit for all methods in "
        "a setting, the largest of their models.", average("{:.3g}".format)),
)  # fmt: skip


def shown_traffic(
    runs: Sequence[RunTraffic],
    axes: Sequence[str],
    metric: Metric,
    source: str | None = None,
    reach: Reach | None = None,
) -> TextTable:
    """Return one line per cell: rounded means over seeds.

    Columns without any value are left out, and parameters unless `reach` fixes the accuracy.

    Parameters
    ----------
    source : str, optional
        The paper of the published memory.
    reach : optional
        The cells whose accuracy others are to reach, or accuracies, with names of axes and values
        for people.
    """
    columns = [
        *(column for column in _COLUMNS if column.name != "params" or is_fixed(reach)),
        *_further_columns(metric, source, reach),
    ]
    cells: dict[tuple[str, ...], list[RunTraffic]] = {}
    for run in runs:
        place = tuple(show_value(run.settings[axis]) for axis in axes)
        cells.setdefault(place, []).append(run)
    lines = [(place, _values(seeds)) for place, seeds in cells.items()]
    shown = [column for column in columns if any(values[column.name] for _, values in lines)]
    return text_table(axes, lines, shown)


def _further_columns(metric: Metric, source: str | None, reach: Reach | None) -> list[Column]:
    """Return the columns that depend on the experiment."""
    fixed = is_fixed(reach)
    return [
        Column("score", head_of(metric),
            "at the end, mean ± standard deviation (n−1) over seeds."),
        Column("best", "To the best round",
            "the bytes both ways until the end of the round that is best on the clients' "
            f"validation samples, with that round and its {METRICS[metric]} (%).", _to_best),
        Column("reached", "To the accuracy" if fixed else "To the same accuracy",
            f"the bytes both ways {_explain_reach(reach, metric)}.", _to_goal),
        Column("memory_mib", "Memory (MiB)",
            "of all that must be held to predict: models, aggregator (1 MiB = 2^20 B).",
            average(_mib)),
        Column("published_memory_mib", "Published (MiB)", f"the same as {source} reports it.",
            average(_mib)),
    ]  # fmt: skip


def _values(seeds: Sequence[RunTraffic]) -> dict[str, list[Any]]:
    """Return the values of seeds in each column, without missing ones."""
    numbers: dict[str, Callable[[RunTraffic], float | Reached | None]] = {
        "rounds": lambda run: run.rounds or None,
        "up_per_round": lambda run: run.in_rounds.up / run.rounds if run.rounds else None,
        "down_per_round": lambda run: run.in_rounds.down / run.rounds if run.rounds else None,
        "once": lambda run: run.once.both or None,
        "up": lambda run: run.total.up,
        "down": lambda run: run.total.down,
        "both": lambda run: run.total.both,
        "params": lambda run: run.total.params,
        "times_one_shot": lambda run: run.of_model(run.total),
        "memory_mib": lambda run: run.held / MIB,
        "published_memory_mib": lambda run: run.memory_mib,
        "score": lambda run: run.course[-1].score,
        "best": lambda run: run.best,
    }
    values = {
        name: [value for value in map(number, seeds) if value is not None]
        for name, number in numbers.items()
    }
    return values | {"reached": [_reached(run) for run in seeds if run.target is not None]}


def _reached(run: RunTraffic) -> Reached | None:
    """Return the round that reaches the goal; round 0 for a run without rounds."""
    if run.reached is None or run.iterative:
        return run.reached
    return replace(run.reached, round=0)


def explain_goal(reach: Reach | None, metric: Metric) -> str:
    """Return the text about the end of counting if `reach` has accuracies."""
    goals = [
        f"{goal:g} % ({axis} = {value})"
        for axis, by_name in by_value(reach).items()
        for value, goal in by_name.items()
    ]
    text = ", ".join(goals) or f"{reach:g} %"
    return f"until the end of the first evaluated round whose {METRICS[metric]} is at least {text}"


def _explain_reach(reach: Reach | None, metric: Metric) -> str:
    if is_fixed(reach):
        return explain_goal(reach, metric)
    cells = reach if isinstance(reach, dict) else {}
    return (
        "until the end of the first evaluated round that is as accurate as the end of the run with "
        f"{join_labels(cells, cells.values())}, of the same seed, on the same samples"
    )
