"""The runs of an experiment as one tidy frame: one row per run and evaluated round."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pyarrow as pa

from fedstage.algorithm.measures.metrics import METRICS_SCHEMA, arrow_type
from fedstage.errors import FedstageError
from fedstage.experiments.runs_file import SEED, ExperimentRun, ExperimentRuns, read_runs_file
from fedstage.results.tables.measured import AS_RELEASED, PRIVATE, measure
from fedstage.results.tables.score_file import measured_in, read_score_file
from fedstage.settings.cells import show_point
from fedstage.settings.scores import SECONDS, Axis

#: Columns of the frame in addition to settings and measurements: the run's position in the runs
#: file (runs may share a metrics file), and its files.
RUN, METRICS_FILE, PARTITION_FILE = "run", "metrics_file", "partition_file"
#: Columns of an experiment with a published counterpart: mean, deviation and number of seeds.
PUBLISHED, PUBLISHED_STD, PUBLISHED_SEEDS = "published", "published_std", "published_seeds"
DIFFERENCE_LOW, DIFFERENCE_HIGH = "difference_low", "difference_high"
#: The deviation of the highest of all rounds in a table.
AS_RELEASED_STD = "as_released_std"
#: Nullable types of settings in the frame.
DTYPES = {
    pa.bool_(): "boolean",
    pa.int64(): "Int64",
    pa.float64(): "Float64",
    pa.string(): "string",
}
#: Settings that share their name with a measured column; the frame keeps the setting.
_SHARED = ("role", "participants")
#: Names of columns of the frame or of the table, which no setting may have.
_TAKEN = {
    *(RUN, METRICS_FILE, PARTITION_FILE, "std", "seeds", "difference"),
    *(DIFFERENCE_LOW, DIFFERENCE_HIGH),
    *(PUBLISHED, PUBLISHED_STD, PUBLISHED_SEEDS, AS_RELEASED, AS_RELEASED_STD),
    *PRIVATE.names,
    *METRICS_SCHEMA.names,
}.difference(_SHARED)


def read_runs(path: Path, scores: Path | None = None) -> tuple[ExperimentRuns, pd.DataFrame]:
    """Read a runs file and the measurements of all of its runs.

    Parameters
    ----------
    scores : Path, optional
        The scores file to read instead of the metrics files.

    Returns
    -------
    experiment : ExperimentRuns
        The content of the runs file.
    frame : pandas.DataFrame
        One row per run and evaluated round, in the order of the file: a column for every setting
        (as a nullable type: integers, floats, booleans or text), `run`, `metrics_file`,
        `partition_file`, the columns of `METRICS_SCHEMA`, for an experiment with a published
        counterpart `published`, `published_std` and `published_seeds`, and the columns of
        `OF_RUNS` that any run has, in the last row of a run.

    Raises
    ------
    FedstageError
        If a file is missing or damaged, an axis is not among a run's settings, two runs have the
        same seed and axes, or a value of the metric is not a number.
    """
    experiment = read_runs_file(path)
    if scores is None:
        return experiment, frame_of_runs(experiment, path)
    return experiment, joined(experiment, path, measured_in(experiment, read_score_file(scores)))


def frame_of_runs(experiment: ExperimentRuns, path: str | Path) -> pd.DataFrame:
    """Return the frame of `read_runs`; `path` names the experiment in messages."""
    return joined(experiment, path, [measure(run, experiment) for run in experiment.runs])


def joined(
    experiment: ExperimentRuns, path: str | Path, measured: Sequence[pd.DataFrame]
) -> pd.DataFrame:
    """Return the frame of `read_runs` from the measurements of each run."""
    _check_axes(experiment, path)
    _check_unique(experiment, path)
    settings = _settings_frame(experiment.runs)
    if experiment.published is not None:
        settings = settings.assign(**_published_columns(experiment.runs))
    frame = _join(settings, measured)
    _check_one_role(frame, experiment.axes)
    return frame


def read_scores(path: Path, scores: Path | None = None) -> tuple[ExperimentRuns, pd.DataFrame]:
    """Read runs as `read_runs` does; raise FedstageError if the table is of seconds."""
    experiment, frame = read_runs(path, scores)
    if experiment.metric in SECONDS:
        raise FedstageError(
            f"{path}: metric = {experiment.metric!r}: must be one of top1_accuracy, "
            "balanced_accuracy, auc for a table of scores; seconds are below results/round_times"
        )
    return experiment, frame


def last_rounds(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the last evaluated round of every run, in the order of the runs."""
    return frame.groupby(RUN, sort=False).tail(1).reset_index(drop=True)


def _check_axes(experiment: ExperimentRuns, path: str | Path) -> None:
    axes = experiment.axes
    for axis in axes:
        if axis == SEED or axes.count(axis) > 1:
            allowed = "each axis once, and never seed: seeds are averaged over"
            raise FedstageError(f"{path}: rows or columns: {axis!r}: allowed is {allowed}")
    for run in experiment.runs:
        missing = [name for name in [*axes, SEED] if name not in run.settings]
        taken = [name for name in run.settings if name in _TAKEN]
        where = f"{path}: settings of {run.metrics}"
        if missing:
            raise FedstageError(f"{where}: {missing[0]}: missing, every run must have it")
        if taken:
            raise FedstageError(f"{where}: {taken[0]}: is a column of the table; rename it")


def _check_unique(experiment: ExperimentRuns, path: str | Path) -> None:
    """Refuse two runs with the same place and seed."""
    seen: dict[tuple[Axis, ...], ExperimentRun] = {}
    for run in experiment.runs:
        place = {name: run.settings[name] for name in [*experiment.axes, SEED]}
        other = seen.setdefault(tuple(place.values()), run)
        if other is not run:
            differing = [
                name
                for name, value in other.settings.items()
                if run.settings.get(name, value) != value
            ]
            remedy = f"make {' and '.join(differing)} rows or columns"
            raise FedstageError(
                f"{path}: {show_point(place)}: two runs ({other.metrics}, {run.metrics}), one is "
                f"allowed; {remedy if differing else 'remove one'}"
            )


def _settings_frame(runs: Sequence[ExperimentRun]) -> pd.DataFrame:
    """Return one row per run: its settings in typed columns, its position and its files."""
    names = dict.fromkeys(name for run in runs for name in run.settings)
    columns = {name: _typed([run.settings.get(name) for run in runs]) for name in names}
    files = {
        RUN: range(len(runs)),
        METRICS_FILE: [run.metrics for run in runs],
        PARTITION_FILE: [run.partition for run in runs],
    }
    return pd.DataFrame({**columns, **files})


def _published_columns(runs: Sequence[ExperimentRun]) -> dict[str, pd.Series]:
    numbers = [run.published for run in runs]
    return {
        PUBLISHED: pd.Series([n and n.value for n in numbers], dtype="float64"),
        PUBLISHED_STD: pd.Series([n and n.std for n in numbers], dtype="float64"),
        PUBLISHED_SEEDS: pd.Series([n and n.seeds for n in numbers], dtype="Int64"),
    }


def _typed(values: Sequence[Axis]) -> pd.Series:
    """Return values in the narrowest type that holds them all; mixed values become texts."""
    dtype = DTYPES[arrow_type(values)]
    if dtype == "string":
        values = [None if value is None else str(value) for value in values]
    return pd.Series(values, dtype=dtype)


def _join(settings: pd.DataFrame, metrics: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Repeat each run's settings for each of its rounds."""
    repeated = settings.loc[settings.index.repeat([len(frame) for frame in metrics])]
    measured = pd.concat(metrics, ignore_index=True)
    measured = measured.drop(columns=[name for name in _SHARED if name in settings])
    return pd.concat([repeated.reset_index(drop=True), measured], axis="columns")


def _check_one_role(frame: pd.DataFrame, axes: Sequence[str]) -> None:
    """Refuse both test and validation scores, unless an axis of the table distinguishes them."""
    files = frame.drop_duplicates("role")
    if len(files) > 1 and "role" not in axes:
        which = ", ".join(
            f"{role} in {file}"
            for role, file in zip(files["role"], files[METRICS_FILE], strict=True)
        )
        raise FedstageError(f"role: {which}: one role is allowed, or make role a row or column")
