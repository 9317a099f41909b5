"""Names of axes, methods and cells for people, and numbers as texts."""

from collections.abc import Iterable, Mapping
from math import isinf, isnan
from typing import Any

import numpy as np
import pandas as pd

from fedstage.results.tidy import METHOD, Header

NOTHING = "–"
METRICS = {
    "top1_accuracy": "Top-1 accuracy",
    "balanced_accuracy": "Balanced accuracy",
    "auc": "AUC",
}
#: How papers write axes in their tables; other axes are labelled by their key, in words.
AXES = {
    "aggregation.server_optimizer.learning_rate": "Server optimiser's rate",
    "aggregator": "Rule",
    "client.learning_rate": "Client rate",
    "client.momentum": "Client momentum",
    "data": "Data",
    "ensemble.checkpoints": "R",
    "global_models": "K",
    "partition.alpha": "α",
    "server.learning_rate": "Server rate",
    "server.temperature": "τ",
}
_UNITS = ("B", "kB", "MB", "GB", "TB")
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def axis_label(axis: str) -> str:
    """Return the label of an axis: ``α`` for `partition.alpha`, ``Method`` for `method`."""
    words = axis.replace(".", " ").replace("_", " ")
    return AXES.get(axis, f"{words[:1].upper()}{words[1:]}")


def value_label(axis: str, value: Any, header: Header) -> str:
    """Return the label of a method, or another value as in YAML, on one line."""
    if axis == METHOD:
        return header.labels.get(str(value), str(value))
    return show_value(value)


def show_value(value: Any) -> str:
    """Write a value as in YAML, on one line, floats without trailing zeros: ``0.1``, ``true``."""
    if pd.isna(value):
        return "none"
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    if isinstance(value, float | np.floating):
        return f"{value:.12g}"
    return " ".join(str(value).splitlines())


def place_label(axes: Iterable[str], values: Mapping[Any, Any], header: Header) -> str:
    """Write a place on some axes: ``FedSDD, α = 0.1``, or ``cifar10`` where a name is enough."""
    return ", ".join(
        label if isinstance(values[axis], str) else f"{axis_label(axis)} = {label}"
        for axis in axes
        for label in [value_label(axis, values[axis], header)]
    )


def labelled(frame: pd.DataFrame, header: Header, axes: Iterable[str]) -> pd.DataFrame:
    """Return the values of axes as texts, in columns that are called by the axes' labels."""
    texts = {
        axis_label(axis): [value_label(axis, value, header) for value in frame[axis].astype(object)]
        for axis in axes
    }
    return pd.DataFrame(texts, index=frame.index)


def metric_head(metric: str) -> str:
    """Write the name of a metric as the head of a column: ``Top-1 accuracy (%)``."""
    return f"{METRICS[metric]} (%)" if metric in METRICS else metric


# --- numbers --------------------------------------------------------------------------------------


def mean_and_std(mean: float, std: float = float("nan"), digits: int = 2) -> str:
    """Write ``61.23 ± 0.45``; the deviation is left out where it is nan."""
    if isnan(mean):
        return NOTHING
    text = f"{mean:.{digits}f}" if isnan(std) else f"{mean:.{digits}f} ± {std:.{digits}f}"
    return text.replace("-", "−")


def signed(number: float) -> str:
    """Write ``+1.05`` or ``−0.30``."""
    return NOTHING if isnan(number) else f"{number:+.2f}".replace("-", "−")


def signed_interval(number: float, low: float, high: float) -> str:
    """Write ``−1.05 [−2.00, −0.10]``, without an interval where there is none."""
    text = signed(number)
    return text if isnan(low) else f"{text} [{signed(low)}, {signed(high)}]"


def p_text(p_value: float) -> str:
    """Write a p-value with three digits: ``0.012``, or ``< 0.001``."""
    return f"{p_value:.3f}" if p_value >= 0.001 else "< 0.001"


def seconds_text(value: float) -> str:
    """Write seconds with about three digits."""
    return NOTHING if isnan(value) else f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f}"


def human_bytes(count: float) -> str:
    """Write a number of bytes with at least three digits from a kilobyte on: ``37.5 kB``."""
    if isnan(count):
        return NOTHING
    value, unit = float(round(count)), 0
    while value >= 999.95 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{value:.1f} {_UNITS[unit]}" if unit else f"{round(count)} B"


def human_count(count: float) -> str:
    """Write a large number with three digits and a power of ten: ``26.0 × 10⁹``."""
    value, power = float(count), 0
    while value >= 999.5:
        value, power = value / 1000, power + 3
    if isnan(value) or not power:
        return NOTHING if isnan(value) else f"{value:.3g}"
    digits = max(0, 2 - int(value >= 9.995) - int(value >= 99.95))
    return f"{value:.{digits}f} × 10{str(power).translate(_RAISED)}"


def guarantee_text(row: Mapping[str, float]) -> str:
    """Write the epsilon of clients, or of samples: ``2.10 a sample (δ = 1e-05)``.

    A delta above 0.001, with which the bound may fail altogether, is marked.
    """
    found = {name: float(row.get(name, float("nan"))) for name in ("epsilon", "example_epsilon")}
    delta, unit = float(row.get("delta", float("nan"))), ""
    epsilon = found["epsilon"]
    if not isnan(found["example_epsilon"]):
        epsilon, unit = found["example_epsilon"], " a sample"
    if isnan(epsilon) or isnan(delta):
        return NOTHING
    large = " > 0.001" if delta > 0.001 else ""
    return f"{'∞' if isinf(epsilon) else f'{epsilon:.2f}'}{unit} (δ = {delta:g}{large})"
