"""The measurements of a run: its metrics, and further numbers of the run as a whole."""

from pathlib import Path

import numpy as np
import pandas as pd

from fedstage.algorithm.measures.metrics import METRICS_SCHEMA
from fedstage.errors import FedstageError
from fedstage.experiments.runs_file import ExperimentRun, ExperimentRuns
from fedstage.settings.scores import SECONDS, Metric
from fedstage.stages.collected.privacy import guarantee
from fedstage.storage.tables import frame_of, load_table

#: The highest value of all rounds, for an experiment with `also: [maximum]`.
AS_RELEASED = "as_released"
#: Measures of a run as a whole, in its last round: dropped updates and all updates, if any may be
#: dropped, and its guarantee by differential privacy, if any, to clients or to samples.
OF_RUNS = (AS_RELEASED, "dropped", "updates", "epsilon", "example_epsilon", "delta")


def measure(run: ExperimentRun, experiment: ExperimentRuns) -> pd.DataFrame:
    """Return the measurements of a run: one row per evaluated round, with columns of `OF_RUNS`.

    Raises
    ------
    FedstageError
        As in `read_metrics`, for the metric of the experiment.
    """
    score: Metric = "top1_accuracy" if experiment.metric in SECONDS else experiment.metric
    frame = read_metrics(run.metrics, score)
    of_run: dict[str, float] = {**_dropped(run), **guarantee(run)}
    if "maximum" in experiment.also:
        of_run[AS_RELEASED] = _highest(run, frame, score)
    before = [np.nan] * (len(frame) - 1)
    return frame.assign(**{name: [*before, float(value)] for name, value in of_run.items()})


def read_metrics(path: str | Path, metric: Metric = "top1_accuracy") -> pd.DataFrame:
    """Read the metrics of one run, ordered by round.

    Raises
    ------
    FedstageError
        If the file is missing, damaged or without rows, has a round twice, or a value of `metric`
        that is not a number.
    """
    frame: pd.DataFrame = frame_of(load_table(path, METRICS_SCHEMA.names))
    if frame.empty:
        raise FedstageError(f"{path}: has no rows, at least one evaluated round is required")
    for round_, value in zip(frame["round"], frame[metric].astype("float64"), strict=True):
        if not np.isfinite(value):
            raise FedstageError(
                f"{path}: {metric} = {value} in round {round_}: must be a finite number"
            )
    repeated = frame.loc[frame["round"].duplicated(), "round"]
    if len(repeated):
        raise FedstageError(f"{path}: round = {repeated.iloc[0]}: is listed twice; keep one")
    return frame.sort_values("round", ignore_index=True)


def _highest(run: ExperimentRun, metrics: pd.DataFrame, score: Metric) -> float:
    """Return the highest score of a run that is evaluated more than once, or nan.

    For an aggregator, it is the highest score over all rounds of its training and at the end, as
    FENS's released code reports it.
    """
    if run.over_rounds is not None:
        later = load_table(run.over_rounds, [score])[score].to_pylist()
        return max(float(value) for value in (*later, metrics[score].iloc[-1]))
    return float(metrics[score].max()) if len(metrics) > 1 else np.nan


def _dropped(run: ExperimentRun) -> dict[str, int]:
    """Return the numbers of dropped and of all updates of a run; nothing if none may be dropped."""
    tables = run.candidates[run.which()].participants
    dropped = [
        was for path in tables for was in load_table(path, ["dropped"])["dropped"].to_pylist()
    ]
    return {"dropped": sum(dropped), "updates": len(dropped)} if tables else {}
