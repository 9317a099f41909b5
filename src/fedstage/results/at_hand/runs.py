"""The runs of a target, found by method, seed and further axes."""

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from fedstage.algorithm.measures.metrics import METRICS_SCHEMA
from fedstage.errors import FedstageError
from fedstage.experiments.runs_file import SEED, ExperimentRun, ExperimentRuns, Part, read_runs_file
from fedstage.plan.results import RESULTS
from fedstage.plan.runs import split_target
from fedstage.results.tables.runs import frame_of_runs
from fedstage.settings.cells import check_cells, selects, show_point
from fedstage.settings.scores import Axis
from fedstage.settings.validation import as_typed
from fedstage.storage.yaml_files import load_project_plugins

METHOD = "method"


def runs_path(target: str, folder: Path) -> Path:
    """Return the runs file of a target in a working folder.

    Raises
    ------
    FedstageError
        If there are no results of the target.
    """
    experiment, scale = split_target(target)
    path = folder / RESULTS / "descriptions" / experiment / f"{scale}.runs.json"
    if not path.is_file():
        known = sorted((folder / RESULTS / "descriptions").glob("*/*.runs.json"))
        names = [f"{path.parent.name}/{path.name.removesuffix('.runs.json')}" for path in known]
        there = f"there is {', '.join(names)}" if names else "there are no results"
        raise FedstageError(f"{target}: no results ({path}); {there}")
    return path


def read_target(target: str, folder: Path) -> ExperimentRuns:
    """Return the runs of a target, with paths that lead to its files from here.

    The project's plugins are loaded, since runs may have their settings.
    """
    path = runs_path(target, folder)
    load_project_plugins(folder / "config.yaml", folder)
    return read_runs_file(path)


def read_finished(target: str, folder: Path) -> ExperimentRuns:
    """Return the runs of a target as `read_target` does.

    Raises
    ------
    FedstageError
        Also if the metrics of any run have not been made.
    """
    experiment = read_target(target, folder)
    missing = [run.metrics for run in experiment.runs if not Path(run.metrics).is_file()]
    if missing:
        command = as_typed("snakemake", "--cores", "all", target)
        raise FedstageError(
            f"{target}: {len(missing)} of {len(experiment.runs)} runs are not finished "
            f"({missing[0]} has not been made yet); {command} finishes them"
        )
    return experiment


def find_run(
    target: str, method: str, seed: int | None, at: Mapping[str, Axis] | None, folder: Path
) -> tuple[str, ExperimentRun, Part]:
    """Return the name for messages of the only run with these values, the run, and its last part.

    Without a seed it must be the only one; `at` are values on further axes.

    Raises
    ------
    FedstageError
        If the target lacks an axis or a value, or if several runs have these values.
    """
    experiment = read_target(target, folder)
    named: dict[str, Axis] = {METHOD: method, SEED: seed, **(at or {})}
    wanted = {axis: value for axis, value in named.items() if (axis, value) != (SEED, None)}
    points = [run.settings for run in experiment.runs]
    check_cells(target, target, dict(wanted), points, seeds=True)
    found = [run for run in experiment.runs if selects(dict(wanted), run.settings)]
    where = f"{target}: {show_point(wanted)}"
    if not found:
        raise FedstageError(f"{where}: no run has all of these values")
    if len(found) > 1:
        differing = [
            axis for axis in found[0].settings if len({run.settings[axis] for run in found}) > 1
        ]
        values = show_point({axis: found[0].settings[axis] for axis in differing})
        raise FedstageError(
            f"{where}: {len(found)} runs; name one by further axes, such as {values}"
        )
    return where, found[0], last_part(found[0])


def last_part(run: ExperimentRun) -> Part:
    """Return the last part of a run; of its chosen candidate, if it has several."""
    return run.candidates[run.which()].parts[-1]


# --- metrics --------------------------------------------------------------------------------------

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
        `fedstage.algorithm.measures.metrics.METRICS_SCHEMA`) and `value` (float; accuracies in percent).
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
