"""The table of an experiment as texts: which columns say something, marks, and a short legend."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import nan
from typing import Any

import pandas as pd

from fedstage.results.labels import (
    NOTHING,
    guarantee_text,
    human_bytes,
    labelled,
    mean_and_std,
    metric_head,
    place_label,
    signed,
    signed_interval,
)
from fedstage.results.regime import converging, regime_line
from fedstage.results.statistics import LEVEL, holm, p_of_differences, paired
from fedstage.results.summary import summarise
from fedstage.results.tidy import Header, Tidy

#: The scale of an experiment that is the paper's, and the one that only tries whether all runs.
PAPER, SMOKE = "paper", "smoke"
PUBLISHED, OTHER_SETTING = "Published (%)", "Published (other setting)"
BEST, STAR = "best", "star"
_SMOKE = (
    "Smoke scale: it shows that everything runs. Models are hardly trained, so these numbers say "
    "nothing about methods."
)


@dataclass(frozen=True)
class Table:
    """A table: the same rows as texts for people and as exact numbers.

    The first `left` columns of `shown` name a line. `marks` has `BEST` or `STAR` at cells by their
    line and column. Lines of text above and below are Markdown.
    """

    title: str
    shown: pd.DataFrame
    left: int
    exact: pd.DataFrame
    marks: Mapping[tuple[int, int], str] = field(default_factory=dict)
    above: Sequence[str] = ()
    below: Sequence[str] = ()


@dataclass(frozen=True)
class _Column:
    """A further column: its head, the text of a row, and whether it says something unasked."""

    head: str
    text: Callable[[Any], str]
    says: Callable[[pd.DataFrame, Header], bool]
    legend: str = ""


def _pair(mean: str, std: str = "") -> Callable[[Any], str]:
    return lambda row: mean_and_std(row.get(mean, nan), row.get(std, nan))


def _agreement_text(row: Any) -> str:
    before, after = (mean_and_std(row.get(f"agreement{of}", nan)) for of in ("_before", ""))
    return after if after == NOTHING else f"{before} → {after}"


def _sent(row: Any) -> float:
    return float(row.get("bytes_up", 0) + row.get("bytes_down", 0))


def _sent_text(row: Any) -> str:
    once = " once" if row["training"] == "one_shot" else ""
    return f"{human_bytes(_sent(row))}{once}" if _sent(row) else NOTHING


def _sends_differ(cells: pd.DataFrame, _: Header) -> bool:
    """Whether methods of one column send different numbers of bytes, if they send any."""
    return len({_sent(row) for row in cells.to_dict("records") if _sent(row)}) > 1


def _rounds_differ(cells: pd.DataFrame, header: Header) -> bool:
    in_rounds = [header.cells[cell].training == "federated" for cell in cells["cell"]]
    return "rounds" not in header.axes and cells.loc[in_rounds, "rounds"].nunique() > 1


def _has(name: str) -> Callable[[pd.DataFrame, Header], bool]:
    return lambda cells, _: name in cells and bool(cells[name].notna().any())


def _never(*_: object) -> bool:
    return False


def _own_models(cells: pd.DataFrame, header: Header) -> bool:
    """Whether clients predict with models of their own, which their own data suit."""
    known = {"client_std", "own_mean"} <= set(cells) and not _varying(cells, header.columns)
    return bool(known and cells["client_std"].notna().any())


#: Further columns by the names that `table.also` asks for them by.
FURTHER: dict[str, _Column] = {
    "own_test": _Column("Own test samples (%)", _pair("own_test_mean", "own_test_std"),
        _has("own_test_mean"), "accuracy for a client on its own test samples, mean ± deviation "
        "over clients"),
    "own_classes": _Column("On a client's own classes (%)", _pair("own_mean", "own_std"),
        _own_models, "classes count as often as in a client's own data, mean ± deviation over "
        "clients. A model of one client alone knows these and hardly others, so that it may be far "
        "above its accuracy on all classes"),
    "privacy": _Column("ε", guarantee_text, lambda cells, _: "delta" in cells,
        "differential privacy of all that a run releases, of its worst seed: of all samples of a "
        "client together, or of a single one where it says so; not covered are normalisation "
        "and choices by validation samples"),
    "maximum": _Column("Highest round (%)", _pair("as_released", "as_released_std"),
        _never, "chosen by the very samples that it is measured on, as some "
        "released code reports; no result"),
    "client_std": _Column("Between clients (points)", _pair("client_std"), _never,
        "deviation over clients' models of the accuracy on common samples"),
    "ece": _Column("Calibration error (%)", _pair("ece"), _never,
        "expected calibration error, in 15 bins of confidence"),
    "disagreement": _Column("Members disagree (%)", _pair("disagreement"), _never,
        "how often two members of an ensemble predict different classes, the mean over pairs"),
    "ensemble_gain": _Column("Ensemble gain (points)",
        lambda row: signed(row.get("ensemble_gain", nan)), _never,
        "accuracy of an ensemble less the mean of its members' accuracies"),
    "agreement": _Column("Student and teacher agree (%)", _agreement_text, _never,
        "predictions on public samples, before → after the last distillation"),
    "bytes": _Column("Bytes a round", _sent_text, _sends_differ,
        "what a participant sends and receives in a round"),
    "loss": _Column("Loss", lambda row: mean_and_std(row["loss"], digits=3), _never),
    "dropped": _Column("Dropped", lambda row: f"{row['dropped']:.0f} of {row['updates']:.0f}",
        lambda cells, _: "dropped" in cells and bool((cells["dropped"] > 0).any()),
        "updates left out because training diverged, in all rounds and seeds"),
    "round": _Column("Round", lambda row: str(row["rounds"]), _rounds_differ),
    "seeds": _Column("Seeds", lambda row: str(row["seeds"]),
        lambda cells, _: cells["seeds"].nunique() > 1),
}  # fmt: skip


def score_table(scores: Tidy) -> Table:
    """Return the table of an experiment.

    Columns are the axes, mean ± deviation (n-1) of the metric for each combination of the column
    axes, published numbers where there are any, and further columns that are asked for or say
    something. The highest mean of a federated method in a column and block (lines with the same row
    axes but the last) is marked, and so are those that the paired t-test over seeds, with Holm's
    correction over the comparisons of the column, does not tell apart from it.
    """
    header, cells = scores.header, summarise(scores)
    keys = labelled(cells, header, _varying(cells, header.rows) or header.rows)
    across = _varying(cells, header.columns)
    heads = [place_label(across, row, header) for row in cells.to_dict("records")]
    lines = keys.drop_duplicates().reset_index(drop=True)
    line_of = {key: i for i, key in enumerate(lines.itertuples(index=False, name=None))}
    groups = dict[str, dict[int, int]]()  # the row of each line in a group of columns
    for number, key in enumerate(keys.itertuples(index=False, name=None)):
        groups.setdefault(heads[number], {})[line_of[key]] = number
    (metric, own), *others = columns = _columns(cells, header)
    shown, means = lines.copy(), dict[int, Mapping[int, int]]()
    for head, of in groups.items():
        means[len(shown.columns)] = of
        shown[head or metric] = _placed(own, of, lines)
        for name, texts in others:
            if len(groups) == 1 or not _agree(texts, groups.values()):
                shown[f"{head}: {name}" if head else name] = _placed(texts, of, lines)
    for name, texts in others if len(groups) > 1 else ():
        if _agree(texts, groups.values()):
            known = {line: row for of in groups.values() for line, row in of.items()}
            shown[name] = _placed(texts, known, lines)
    marks = {} if header.scale == SMOKE else _marks(cells, lines, means, header)
    below = [*_explain_marks(cells, marks), *_explain(dict(columns), header), *header.notes]
    if header.regime is not None and header.scale != SMOKE:
        below.append(regime_line(header.regime, converging(scores)))
    exact = cells.drop(columns=["cell", "by_seed"])
    if header.scale != PAPER:
        exact = exact.drop(columns=[name for name in exact if str(name).startswith("difference")])
    above = [_SMOKE] if header.scale == SMOKE else [_about(cells, header)]
    return Table(header.title, shown, len(lines.columns), exact, marks, above, below)


def _varying(cells: pd.DataFrame, axes: Sequence[str]) -> list[str]:
    return [axis for axis in axes if cells[axis].nunique(dropna=False) > 1]


def _placed(texts: Sequence[str], of: Mapping[int, int], lines: pd.DataFrame) -> list[str]:
    return [texts[of[line]] if line in of else NOTHING for line in lines.index]


def _agree(texts: Sequence[str], groups: Iterable[Mapping[int, int]]) -> bool:
    """Whether the texts of a column depend on the line alone."""
    seen: dict[int, set[str]] = {}
    for of in groups:
        for line, row in of.items():
            seen.setdefault(line, set()).add(texts[row])
    return all(len(found) == 1 for found in seen.values())


def _about(cells: pd.DataFrame, header: Header) -> str:
    """Return a line about all numbers."""
    roles = " and ".join(dict.fromkeys(cell.role for cell in header.cells))
    rounds = cells.loc[[header.cells[i].training == "federated" for i in cells["cell"]], "rounds"]
    after = f" after round {rounds.iloc[0]}" if rounds.nunique() == 1 else ""
    least, most = int(cells["seeds"].min()), int(cells["seeds"].max())
    number = f"{least} to {most} seeds" if least < most else f"{most} seed{'s' * (most > 1)}"
    how = "mean ± standard deviation (n−1) over " if most > 1 else ""
    return f"{metric_head(header.metric)} on {roles} samples{after}: {how}{number}."


def _columns(cells: pd.DataFrame, header: Header) -> list[tuple[str, list[str]]]:
    """Return the columns behind the axes: the metric, published numbers, and further ones."""
    rows = [row | {"training": header.cells[row["cell"]].training}
            for row in cells.to_dict("records")]  # fmt: skip
    own = [mean_and_std(row[header.metric], row["std"]) for row in rows]
    columns = [(metric_head(header.metric), own)]
    if header.published is not None:
        paper = [mean_and_std(row["published"], row["published_std"]) for row in rows]
        columns.append((PUBLISHED if header.scale == PAPER else OTHER_SETTING, paper))
    if header.published is not None and header.scale == PAPER:
        ends = ("difference", "difference_low", "difference_high")
        texts = [signed_interval(*(row[name] for name in ends)) for row in rows]
        columns.append(("Difference (points)", texts))
    columns += [
        (column.head, [column.text(row) for row in rows])
        for name, column in FURTHER.items()
        if name in header.also or column.says(cells, header)
    ]
    return [column for column in columns if set(column[1]) != {NOTHING}]


def _explain(columns: Collection[str], header: Header) -> list[str]:
    """Return lines about the columns that are not obvious."""
    lines = [
        f"**{column.head}**: {column.legend}."
        for column in FURTHER.values()
        if column.head in columns and column.legend
    ]
    if OTHER_SETTING in columns:
        found = f"{header.published_at} {header.measured_at}"
        lines.insert(0, f"{found} Orders may be compared, numbers may not.")
    if PUBLISHED in columns:
        found = f"**Published**: {header.published}. **Difference**: measured minus published, "
        found += "with the 95 % interval of Welch's t-test where both have deviations."
        lines.insert(0, found)
    return lines


# --- marks ----------------------------------------------------------------------------------------


def _marks(
    cells: pd.DataFrame,
    lines: pd.DataFrame,
    means: Mapping[int, Mapping[int, int]],
    header: Header,
) -> dict[tuple[int, int], str]:
    """Return the marks of the columns of means, which have a cell's number by its line."""
    values, by_seed = cells[header.metric].tolist(), cells["by_seed"].tolist()
    ranked = [header.cells[cell].federated for cell in cells["cell"]]
    blocks = lines.groupby(list(lines.columns[:-1]), sort=False) if len(lines.columns) > 1 else None
    grouped = [[*lines.index]] if blocks is None else [[*block.index] for _, block in blocks]
    marks: dict[tuple[int, int], str] = {}
    for column, of in means.items():
        others: dict[int, list[float]] = {}
        for block in grouped:
            here = [line for line in block if line in of and ranked[of[line]]]
            value = {line: values[of[line]] for line in here}
            if len(set(value.values())) < 2:
                continue
            best = max(here, key=value.__getitem__)
            for line in here:
                if value[line] == value[best]:
                    marks[line, column] = BEST
                else:
                    others[line] = paired(by_seed[of[best]], by_seed[of[line]])
        p_values = holm([p_of_differences(differences) for differences in others.values()])
        for (line, differences), p_value in zip(others.items(), p_values, strict=True):
            if len(differences) > 1 and p_value > LEVEL:
                marks[line, column] = STAR
    return marks


def _explain_marks(cells: pd.DataFrame, marks: Mapping[tuple[int, int], str]) -> list[str]:
    if not marks:
        return []
    text = "**Bold**: the highest mean of a federated method"
    if STAR in marks.values():
        text += "; *: not told apart from it by the paired t-test over seeds (p > 0.05, Holm)"
    elif bool((cells["seeds"] == 1).all()):
        text += " (a single seed, so no test tells others apart)"
    return [f"{text}."]
