"""How values of axes are written for people, in tables and figures alike."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd


def show_value(value: Any) -> str:
    """Write a value as YAML would, floats without trailing zeros: ``0.1``, ``1``, ``true``."""
    if pd.isna(value):
        return "none"
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    if isinstance(value, float | np.floating):
        return f"{value:.12g}"
    return str(value)


def join_labels(axes: Iterable[str], values: Iterable[Any]) -> str:
    """Write a point of several axes: ``data = cifar10, partition.alpha = 0.1``."""
    pairs = zip(axes, values, strict=True)
    return ", ".join(f"{axis} = {show_value(value)}" for axis, value in pairs)
