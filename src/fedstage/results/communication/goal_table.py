"""The table of Fed-ET's C_acc(x): parameters that all participants move until an accuracy.

Cho et al. 2022, Section 4 and Table 3: a row a method, a column a data set.
"""

from collections.abc import Sequence
from statistics import mean

from fedstage.results.communication.runs import RunTraffic
from fedstage.results.tables.labels import NOTHING, human_count, join_labels, show_value

_MEASURED, _PUBLISHED, NEVER = "Parameters", "Published", "not reached"


def goal_rows(
    runs: Sequence[RunTraffic], rows: Sequence[str], columns: Sequence[str]
) -> list[dict[str, str]]:
    """Return a row a point of the row axes, with a cell for each point of the column axes.

    A cell is the mean over the seeds that reach the accuracy, with their number unless all do.
    Published numbers stand beside the cells of columns that have any.
    """
    cells: dict[tuple[str, ...], dict[str, list[RunTraffic]]] = {}
    for run in runs:
        place = tuple(show_value(run.settings[axis]) for axis in rows)
        label = join_labels(columns, [run.settings[axis] for axis in columns])
        cells.setdefault(place, {}).setdefault(label, []).append(run)
    labels = dict.fromkeys(label for by_label in cells.values() for label in by_label)
    told = {label for run in runs for label in labels if _is_told(run, label, columns)}
    return [
        dict(zip(rows, place, strict=True))
        | {
            head: text
            for label in labels
            for head, text in _cell(label, by_label.get(label, []), label in told).items()
        }
        for place, by_label in cells.items()
    ]


def _is_told(run: RunTraffic, label: str, columns: Sequence[str]) -> bool:
    """Whether a run belongs to a column and has a published number."""
    own = join_labels(columns, [run.settings[axis] for axis in columns])
    return own == label and run.published_params is not None


def _cell(label: str, seeds: Sequence[RunTraffic], told: bool) -> dict[str, str]:
    """Return the texts of a cell by the heads of its columns."""
    texts = {label or _MEASURED: _measured(seeds)}
    if told:
        number = seeds[0].published_params if seeds else None
        head = f"{label}: {_PUBLISHED.lower()}" if label else _PUBLISHED
        texts[head] = NOTHING if number is None else human_count(number)
    return texts


def _measured(seeds: Sequence[RunTraffic]) -> str:
    """Write the mean of what seeds have sent; that an accuracy is not reached is a result too."""
    reached = [run.reached.params for run in seeds if run.reached is not None]
    if not seeds:
        return NOTHING
    if not reached:
        return NEVER
    text = human_count(mean(reached))
    return text if len(reached) == len(seeds) else f"{text} ({len(reached)} of {len(seeds)} seeds)"
