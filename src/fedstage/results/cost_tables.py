"""Tables of what runs cost, send, and forget: one line per cell, and exact numbers per run."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import isnan

import pandas as pd

from fedstage.results.labels import (
    NOTHING,
    guarantee_text,
    human_bytes,
    human_count,
    labelled,
    mean_and_std,
    metric_head,
    seconds_text,
    signed_interval,
)
from fedstage.results.measures import (
    OVERLAP,
    PARTICIPANTS,
    of_runs,
    traffic,
    until_best,
    until_reached,
)
from fedstage.results.statistics import interval_of_differences, paired
from fedstage.results.table import Table
from fedstage.results.tidy import SEED, Header, Tidy, by_round, cell_numbers, last_rounds
from fedstage.settings.experiments import is_fixed

MIB = 2**20
#: Writes the cell of a column from the runs of a cell of the grid.
Text = Callable[[pd.DataFrame], str]


def table_of_runs(
    runs: pd.DataFrame,
    header: Header,
    columns: Mapping[str, Text],
    legend: Sequence[str],
    what: str,
    about: str,
) -> Table:
    """Return a line for each cell of the grid, from one row per run, without empty columns."""
    runs = runs.assign(_cell=cell_numbers(header, runs))
    cells = runs.groupby("_cell", sort=False)
    shown = labelled(cells.head(1), header, header.shown).reset_index(drop=True)
    for head, text in columns.items():
        texts = [text(cell) for _, cell in cells]
        if set(texts) != {NOTHING}:
            shown[head] = texts
    below = [line for line in legend if _head(line) in shown]
    exact = runs.drop(columns="_cell")
    title = f"{header.title}: {what}"
    return Table(title, shown, len(header.shown), exact, above=[about], below=below)


def _head(line: str) -> str:
    """Return the head of a column that a line of a legend is about."""
    return line.removeprefix("**").partition("**")[0]


def _mean(name: str, text: Callable[[float], str]) -> Text:
    return lambda runs: text(float(runs[name].mean()))


def _spread(name: str, digits: int = 2) -> Text:
    return lambda runs: mean_and_std(float(runs[name].mean()), float(runs[name].std()), digits)


def _mib(size: float) -> str:
    return NOTHING if isnan(size) else f"{size:.2f}" if size >= 1 else f"{size:.2g}"


# --- costs ----------------------------------------------------------------------------------------


def cost_table(scores: Tidy, costs: Tidy) -> Table:
    """Return what each method reaches and costs, and its difference to the first one.

    Each method is compared with the first of its column, paired over the seeds that both have.
    """
    header, run = scores.header, scores.run
    runs = last_rounds(scores)
    runs = pd.concat([runs, traffic(scores, costs)[["memory_bytes"]]], axis="columns")
    for side in ("clients", "server"):
        rows = costs.frame[costs.frame["side"] == side]
        sums = rows.groupby(run, sort=False, dropna=False)["seconds"].sum().rename(f"{side}_s")
        runs = runs.merge(sums.reset_index(), on=run, how="left").fillna({f"{side}_s": 0.0})
    first: dict[str, pd.DataFrame] = {}

    def difference(cell: pd.DataFrame) -> str:
        column = "|".join(str(cell[axis].iloc[0]) for axis in header.columns)
        other = first.setdefault(column, cell)
        if other is cell:
            return NOTHING
        own, base = (dict(zip(of[SEED], of[header.metric], strict=True)) for of in (cell, other))
        found = interval_of_differences(paired(own, base))
        return signed_interval(found.mean, found.low, found.high)

    def guarantee(cell: pd.DataFrame) -> str:
        worst = cell.reindex(columns=["epsilon", "example_epsilon", "delta"]).max()
        return guarantee_text({str(name): float(value) for name, value in worst.items()})

    columns: dict[str, Text] = {
        metric_head(header.metric): _spread(header.metric),
        "Difference to the first": difference,
        "ε": guarantee,
        "Bytes": _mean("bytes", human_bytes),
        "Clients (s)": _mean("clients_s", seconds_text),
        "Server (s)": _mean("server_s", seconds_text),
        "Memory (MiB)": _mean("memory_bytes", lambda size: _mib(size / MIB)),
    }
    legend = [
        "**Difference to the first**: row of its column, paired over seeds, with the 95 % interval "
        "of each comparison by itself.",
        "**Bytes**: to and from the mean client until training ends.",
        "**Clients (s)**: seconds of computing of all clients, one after the other, without "
        "evaluation; what several methods share counts for each.",
        "**Memory (MiB)**: of all that must be held to predict.",
    ]
    about = "What each method reaches and costs: means over seeds, ± standard deviation (n−1)."
    return table_of_runs(runs, header, columns, legend, "costs", about)


# --- communication --------------------------------------------------------------------------------


def traffic_tables(scores: Tidy, costs: Tidy) -> list[Table]:
    """Return what the mean client sends and receives, and first what a fixed accuracy takes."""
    header, run = scores.header, scores.run
    last = last_rounds(scores)
    runs = pd.concat([last[[*run, header.metric]], traffic(scores, costs)], axis="columns")
    best, reached = until_best(scores), until_reached(scores)
    runs = runs.assign(
        best_round=best["round"].to_numpy(),
        best_score=best[header.metric].to_numpy(),
        reached_round=reached["round"].to_numpy(),
        target=reached["target"].to_numpy(),
    )
    cells = cell_numbers(header, runs)
    paper = {"memory": "memory_mib", "params": "params"}
    for name, key in paper.items():
        runs[f"published_{name}"] = [getattr(header.cells[i], key) for i in cells]
    columns: dict[str, Text] = {
        metric_head(header.metric): _spread(header.metric),
        "Upload a round": _mean("bytes_up_a_round", human_bytes),
        "Bytes": _mean("bytes", human_bytes),
        "Times one model": _mean("times_one_shot", lambda n: NOTHING if isnan(n) else f"{n:.3g}"),
        "To the best round": partial(_until, end="best"),
        "To the accuracy": partial(_until, end="reached"),
        "Memory (MiB)": _mean("memory_bytes", lambda size: _mib(size / MIB)),
        "Published (MiB)": _mean("published_memory", _mib),
    }
    legend = [
        "**Times one model**: up and down, the largest of the methods' models in a setting.",
        "**To the best round**: until the round that is best on clients' validation samples.",
        "**To the accuracy**: until the first evaluated round that has it, by runs that reach it.",
    ]
    about = "Bytes to and from the mean client until training ends: means over seeds."
    tables = [table_of_runs(runs, header, columns, legend, "communication", about)]
    if is_fixed(header.reach):
        goal = {"Parameters": partial(_until, end="reached", params=True)} | {
            "Published": _mean("published_params", human_count)
        }
        about = "Parameters that all participants move until the accuracy is reached."
        tables.insert(0, table_of_runs(runs, header, goal, [], "until an accuracy", about))
    return tables


def _until(runs: pd.DataFrame, end: str, params: bool = False) -> str:
    """Write the bytes until a round, and how many seeds reach it unless all do."""
    bytes_to = "bytes_to_best" if end == "best" else "bytes_to_reach"
    values = runs["params_to_reach" if params else bytes_to]
    known = values.dropna()
    if known.empty:
        wanted = end == "reached" and runs["target"].notna().any()
        return "not reached" if wanted else NOTHING
    text = human_count(known.mean()) if params else human_bytes(known.mean())
    rounds = runs[f"{end}_round"].dropna().astype(int)
    if not params and rounds.max() > 1:
        ends = dict.fromkeys([rounds.min(), rounds.max()])
        text += f" (round {'–'.join(map(str, ends))})"
    return text if len(known) == len(values) else f"{text}, {len(known)} of {len(values)} seeds"


# --- seconds of a round, and forgetting -----------------------------------------------------------

_HEADS = {
    "participant_s": "A participant",
    "training_s": "Training",
    "aggregation_s": "Aggregation",
    "logits_s": "Logits",
    "distillation_s": "Distillation",
    "added_s": "Logits and distillation",
    "round_s": "Round",
}
_RETAINED = {
    "final_accuracy": ("Final accuracy (%)", 2),
    "forget_score": ("Forget score", 2),
    "current": ("Current (%)", 2),
    "previous": ("Previous (%)", 2),
    "lost": ("Lost", 1),
    "gained": ("Gained", 1),
    "retained": ("Retained", 1),
    "distance": ("Distance (%)", 2),
    "fluctuation": ("Fluctuation", 2),
    "overlap": ("Overlap (%)", 2),
}


def time_table(costs: Tidy) -> Table:
    """Return the seconds of the jobs of a round: medians of each run, over seeds."""
    rows = costs.frame[costs.frame["side"] == "round"]
    runs = rows.pivot_table(
        "median_s", [*costs.run], "stage", sort=False, dropna=False, observed=True
    ).dropna(how="all")
    runs = runs.rename(columns="{}_s".format).reset_index()
    columns = {head: _spread(name) for name, head in _HEADS.items() if name in runs}
    about = (
        "Seconds of all jobs of a round, one after the other: the median over rounds (of a "
        "participant: over all of its kind), mean ± standard deviation (n−1) over seeds."
    )
    return table_of_runs(runs, costs.header, columns, [], "seconds of a round", about)


def retention_table(scores: Tidy) -> Table:
    """Return what each method forgets: means over rounds of each run, over seeds."""
    rounds = by_round(scores, role=PARTICIPANTS)
    runs = rounds[scores.run].drop_duplicates().reset_index(drop=True)
    of_runs_too = {"final_accuracy", "fluctuation"}
    of_runs_too |= {"overlap"} if any(str(name).startswith(OVERLAP) for name in rounds) else set()
    for name in _RETAINED:
        if name in of_runs_too or name in rounds:
            runs = runs.merge(
                of_runs(scores, name).rename(columns={"value": name}), on=scores.run, how="left"
            )
    columns = {
        head: _spread(name, digits) for name, (head, digits) in _RETAINED.items() if name in runs
    }
    legend = [
        "**Forget score**: accuracy on the current participants' samples minus that on the "
        "previous ones', in percentage points; lower is better.",
        "**Lost**: previous samples that were right before the round and are wrong after it; "
        "**Gained** and **Retained** likewise.",
        "**Distance (%)**: of participants' models w from their group's W, ‖w − W‖ / ‖W‖; "
        "**Fluctuation**: mean absolute change of the test accuracy from round to round.",
        "**Overlap (%)**: of the test samples that two methods have learnt, the share that both "
        "have; mean over the other methods.",
    ]
    about = "Means over rounds, of each run; over seeds ± standard deviation (n−1)."
    return table_of_runs(runs, scores.header, columns, legend, "forgetting", about)
