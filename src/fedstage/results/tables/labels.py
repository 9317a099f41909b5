"""The text of axes, their values, measured numbers and heads in tables and figures for people."""

from collections.abc import Iterable, Mapping, Sequence
from math import isinf, isnan, nan
from typing import Any

import numpy as np
import pandas as pd

from fedstage.experiments.runs_file import SEED, ExperimentRuns
from fedstage.settings.scores import Axis, Metric

NOTHING = "–"
METHOD = "method"
METRICS: dict[Metric, str] = {
    "top1_accuracy": "Top-1 accuracy",
    "balanced_accuracy": "balanced accuracy",
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
#: The samples that a score is computed on.
ROLES = {
    "test": "test samples",
    "test_own": "test samples as each client prepares them",
    "validation": "validation samples",
}
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_UNITS = ("B", "kB", "MB", "GB", "TB")


def axis_label(axis: str) -> str:
    """Return the label of an axis: ``α`` for `partition.alpha`, ``Method`` for `method`."""
    if axis == SEED:
        return axis
    words = axis.replace(".", " ").replace("_", " ")
    return AXES.get(axis, f"{words[:1].upper()}{words[1:]}")


def for_people(experiment: ExperimentRuns) -> ExperimentRuns:
    """Return an experiment with labels for its axes and methods."""
    over = None if experiment.over is None else axis_label(experiment.over)
    return experiment.model_copy(
        update={
            "rows": [axis_label(axis) for axis in experiment.rows],
            "columns": [axis_label(axis) for axis in experiment.columns],
            "over": over,
            "runs": [
                run.model_copy(update={"settings": settings_for_people(run.settings, experiment)})
                for run in experiment.runs
            ],
        }
    )


def settings_for_people(settings: Mapping[str, Any], experiment: ExperimentRuns) -> dict[str, Any]:
    """Return settings, such as a run's or some cells', with labels for axes and methods."""
    labels = experiment.labels
    return {
        axis_label(axis): _method_label(value, labels) if axis == METHOD else value
        for axis, value in settings.items()
    }


def _method_label(method: Any, labels: Mapping[str, str]) -> Any:
    """Return the label of a method, or of each method in a list or among a mapping's keys."""
    if isinstance(method, list):
        return [_method_label(name, labels) for name in method]
    if isinstance(method, dict):
        return {_method_label(name, labels): value for name, value in method.items()}
    return labels.get(str(method), method)


def place_for_people(settings: Mapping[str, Axis], experiment: ExperimentRuns) -> dict[str, str]:
    """Return a run's place in the table as texts, by the labels of the table's axes."""
    place = {axis: settings[axis] for axis in experiment.axes}
    labelled = settings_for_people(place, experiment)
    return {axis: show_value(value) for axis, value in labelled.items()}


def frame_for_people(frame: pd.DataFrame, experiment: ExperimentRuns) -> pd.DataFrame:
    """Return a frame of runs, or a table, with a labelled column for each axis it has.

    The other columns stay, since `role` and `participants` are measured as well.
    """
    axes = [axis for axis in experiment.runs[0].settings if axis in frame]
    labels = {METHOD: experiment.labels}
    return frame.assign(
        **{axis_label(axis): frame[axis].replace(labels.get(axis, {})) for axis in axes}
    )


def show_value(value: Any) -> str:
    """Write a value as in YAML, on one line, floats without trailing zeros: ``0.1``, ``true``."""
    if pd.isna(value):
        return "none"
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    if isinstance(value, float | np.floating):
        return f"{value:.12g}"
    return " ".join(str(value).splitlines())


def head_of(metric: Metric) -> str:
    """Write the name of a metric as the head of a column: ``Top-1 accuracy (%)``."""
    name = METRICS[metric]
    return f"{name[0].upper()}{name[1:]} (%)"


def join_labels(axes: Iterable[str], values: Iterable[Any]) -> str:
    """Write a point on several axes: ``data = cifar10, partition.alpha = 0.1``."""
    pairs = zip(axes, values, strict=True)
    return ", ".join(f"{axis} = {show_value(value)}" for axis, value in pairs)


def name_points(frame: pd.DataFrame, axes: Sequence[str]) -> list[str]:
    """Write the points of rows shortly, for figures: ``cifar10, α = 0.1``, axes only of numbers."""
    return [_name_place({axis: row[axis] for axis in axes}) for row in frame.to_dict("records")]


def _name_place(values: Mapping[str, Any]) -> str:
    return ", ".join(_name_value(axis, value) for axis, value in values.items())


def _name_value(axis: str, value: Any) -> str:
    if axis == axis_label("role"):
        return ROLES.get(str(value), str(value))
    text = isinstance(value, str)
    return value.replace("_", " ") if text else f"{axis} = {show_value(value)}"


def join_for_people(
    axes: Iterable[str], settings: Mapping[str, Axis], experiment: ExperimentRuns
) -> str:
    """Write a run's place on some axes: ``Method = FedSDD, α = 0.1``."""
    labelled = settings_for_people({axis: settings[axis] for axis in axes}, experiment)
    return join_labels(labelled, labelled.values())


def name_for_people(
    axes: Iterable[str], settings: Mapping[str, Axis], experiment: ExperimentRuns
) -> str:
    """Write a run's place on some axes shortly: ``FedSDD, α = 0.1``, axes only of numbers."""
    return _name_place(settings_for_people({axis: settings[axis] for axis in axes}, experiment))


def mean_and_std(mean: float, std: float | None = None, digits: int = 2) -> str:
    """Write ``61.23 ± 0.45``; the deviation is left out where it is None or nan."""
    if isnan(mean):
        return NOTHING
    text = f"{mean:.{digits}f}"
    return text if std is None or isnan(std) else f"{text} ± {std:.{digits}f}"


#: What a column of epsilon covers.
PRIVACY_LEGEND = (
    "of differential privacy, of all global models of a run, for the δ in brackets; the smaller, "
    f"the more private; {NOTHING}: none. A δ above 0.001 is marked, because with this probability "
    "the bound may fail altogether. The largest of the seeds. Of all samples of a client "
    "together or, where it says so, of a single sample, where the clients' numbers of samples are "
    "public. "
    "It covers clients' training samples, but not their mean and deviation, by which images are "
    "normalised, nor that settings were chosen, or stopping, by validation samples of clients."
)


def show_epsilon(epsilon: float, delta: float, unit: str = "") -> str:
    """Write epsilon and its delta: ``2.10 (δ = 1e-05)``; infinite without noise.

    A delta that is too large to mean much is marked as `PRIVACY_LEGEND` says.
    """
    if isnan(epsilon):
        return NOTHING
    large = " > 0.001" if delta > 0.001 else ""
    return f"{'∞' if isinf(epsilon) else f'{epsilon:.2f}'}{unit} (δ = {delta:g}{large})"


def show_guarantee(found: Mapping[str, float | None]) -> str:
    """Write the epsilon of clients, or of samples: ``2.10 a sample (δ = 1e-05)``."""
    of_client, of_sample, delta = (
        nan if found.get(name) is None else float(found[name] or 0.0)
        for name in ("epsilon", "example_epsilon", "delta")
    )
    if isnan(of_sample):
        return show_epsilon(of_client, delta)
    return show_epsilon(of_sample, delta, " a sample")


def signed(number: float) -> str:
    """Write ``+1.05`` or ``−0.30``."""
    return NOTHING if isnan(number) else f"{number:+.2f}".replace("-", "−")


def signed_interval(number: float, low: float, high: float) -> str:
    """Write ``−1.05 [−2.00, −0.10]``, without an interval where there is none."""
    text = signed(number)
    return text if isnan(low) else f"{text} [{signed(low)}, {signed(high)}]"


def show_range(numbers: Iterable[int]) -> str:
    """Write the lowest and the highest of some numbers if these differ, `NOTHING` without any."""
    ordered = sorted(set(numbers))
    return "–".join(map(str, dict.fromkeys(ordered[:1] + ordered[-1:]))) or NOTHING


def human_bytes(count: int) -> str:
    """Write a number of bytes with at least three digits from a kilobyte on: ``37.5 kB``."""
    value, unit = float(count), 0
    while value >= 999.95 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{value:.1f} {_UNITS[unit]}" if unit else f"{count} B"


def human_count(count: float) -> str:
    """Write a large number with three digits and a power of ten: ``26.0 × 10⁹``."""
    value, power = float(count), 0
    while value >= 999.5:
        value, power = value / 1000, power + 3
    if not power:
        return f"{value:.3g}"
    digits = max(0, 2 - int(value >= 9.995) - int(value >= 99.95))
    return f"{value:.{digits}f} × 10{str(power).translate(_RAISED)}"


# --- heads and legend of the result table ---------------------------------------------------------

PUBLISHED_HEAD, DIFFERENCE = "Published (%)", "Difference (points)"
RELEASED = "as_released: highest round, no result (%)"
OWN_TEST, OWN_MIX = "Clients' own test samples (%)", "Clients' own class mix (%)"
EPSILON = "ε"

#: Explanations of the columns.
LEGEND = {
    **dict.fromkeys(
        map(head_of, METRICS), "mean ± standard deviation (n−1) over seeds; no ± for a single seed."
    ),
    PUBLISHED_HEAD: (
        f"mean ± deviation that {{source}} reports; {NOTHING} where it reports nothing."
    ),
    DIFFERENCE: (
        "measured minus published, in percentage points, with the 95 % confidence interval of "
        "Welch's t-test where both have a deviation over several seeds."
    ),
    RELEASED: (
        "the highest of all evaluated rounds, chosen by the very samples that it is measured on. "
        "Some released code reports that; it is here to compare with such numbers only."
    ),
    EPSILON: PRIVACY_LEGEND,
    "Seeds": "number of seeds that the values are means of.",
    "Client std (points)": (
        "standard deviation over the clients' models on the common evaluation set, in percentage "
        f"points; {NOTHING} where all clients share one model."
    ),
    OWN_TEST: (
        "accuracy for a client on its own test samples: mean ± standard deviation over the clients "
        "that have any."
    ),
    OWN_MIX: (
        "accuracy on the common samples, each class weighted by a client's training samples of it, "
        "which estimates what the client would see: mean ± standard deviation over clients."
    ),
    "Upload": "bytes that one participant sends in the last evaluated round (1 kB = 1000 B).",
    "Download": "bytes that one participant receives in that round.",
    "Round": "the last evaluated round of the runs, which the values are of.",
}
