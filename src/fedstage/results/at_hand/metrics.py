"""The metrics of a target as one tidy frame."""

from pathlib import Path

import pandas as pd

from fedstage.results.at_hand.runs import METHOD, read_finished
from fedstage.results.metrics import METRICS_SCHEMA
from fedstage.results.runs_file import SEED, ExperimentRun, ExperimentRuns
from fedstage.results.tables.runs import frame_of_runs

#: Columns of metrics files about what was measured, and when.
_WHAT = ("round", "evaluated", "role")


def load(target: str, folder: str | Path = ".") -> pd.DataFrame:
    """Return all metrics of a target, one row per run, evaluated round and measure.

    Parameters
    ----------
    target : str
        An experiment, with its scale unless that is ``default``: ``quickstart``,
        ``fedsdd_table2/mini``.
    folder : str or Path
        The working folder, which has a folder `results`.

    Returns
    -------
    pandas.DataFrame
        Columns `method`, `label` (its name in tables), a column for each further axis of the
        experiment's grid, `seed`, `round`, `evaluated` (``global_model``, ``clients``, ...),
        `role` (``test``, ``validation``: the samples), `measure` (a column of
        `fedstage.results.metrics.METRICS_SCHEMA`) and `value` (float; accuracies in percent).
        Scores on validation samples are among the rows if they have been made.

    Raises
    ------
    FedstageError
        If there are no results of the target, or a run is not finished.
    """
    experiment = read_finished(target, Path(folder))
    frames = [
        frame_of_runs(described, target) for described in (experiment, *_on_validation(experiment))
    ]
    frame = pd.concat(frames, ignore_index=True)
    axes = list(experiment.runs[0].settings)
    frame["label"] = frame[METHOD].replace(experiment.labels)
    further = [axis for axis in axes if axis not in (METHOD, SEED, *_WHAT)]
    names = [METHOD, "label", *further, SEED, *_WHAT]
    measures = [name for name in METRICS_SCHEMA.names if name not in names]
    frame[measures] = frame[measures].astype("float64")
    return frame.melt(names, measures, var_name="measure", value_name="value")


def _on_validation(experiment: ExperimentRuns) -> list[ExperimentRuns]:
    """Return the experiment with the scores on validation samples that exist, if any do."""
    runs = [
        run.model_copy(update={"metrics": path})
        for run in experiment.runs
        for path in validation_metrics(run)
    ]
    return [experiment.model_copy(update={"runs": runs})] if runs else []


def validation_metrics(run: ExperimentRun) -> list[str]:
    """Return a run's additional metrics on validation samples, where they have been made."""
    if run.chosen is not None or not run.validation or run.validation[0] == run.metrics:
        return []
    return [path for path in run.validation[:1] if Path(path).is_file()]
