"""How values of axes and measured numbers are written for people, in tables and figures alike."""

from collections.abc import Iterable
from math import isnan, nan
from typing import Any

import numpy as np
import pandas as pd

from fedstage.settings.scores import Metric

NOTHING = "–"
#: How metrics are called.
METRICS: dict[Metric, str] = {
    "top1_accuracy": "top-1 accuracy",
    "balanced_accuracy": "balanced accuracy",
    "auc": "AUC",
}
_UNITS = ("B", "kB", "MB", "GB", "TB")


def show_value(value: Any) -> str:
    """Write a value as YAML would, floats without trailing zeros: ``0.1``, ``1``, ``true``."""
    if pd.isna(value):
        return "none"
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    if isinstance(value, float | np.floating):
        return f"{value:.12g}"
    return str(value)


def head_of(metric: Metric) -> str:
    """Write the name of a metric as a head: ``Top-1 accuracy (%)``."""
    name = METRICS[metric]
    return f"{name[0].upper()}{name[1:]} (%)"


def join_labels(axes: Iterable[str], values: Iterable[Any]) -> str:
    """Write a point of several axes: ``data = cifar10, partition.alpha = 0.1``."""
    pairs = zip(axes, values, strict=True)
    return ", ".join(f"{axis} = {show_value(value)}" for axis, value in pairs)


def mean_and_std(mean: float, std: float = nan) -> str:
    """Write ``61.23 ± 0.45``, without the deviation where there is none."""
    if isnan(mean):
        return NOTHING
    return f"{mean:.2f}" if isnan(std) else f"{mean:.2f} ± {std:.2f}"


def signed(number: float) -> str:
    """Write ``+1.05`` or ``−0.30``."""
    return NOTHING if isnan(number) else f"{number:+.2f}".replace("-", "−")


def human_bytes(count: int) -> str:
    """Write a number of bytes with three digits or more: ``37.5 kB``."""
    value, unit = float(count), 0
    while value >= 999.95 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{value:.1f} {_UNITS[unit]}" if unit else f"{count} B"
