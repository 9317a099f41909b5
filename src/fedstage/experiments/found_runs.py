"""The runs of a target, found by method, seed and further axes."""

from collections.abc import Mapping
from pathlib import Path

from fedstage.errors import FedstageError
from fedstage.experiments.runs_file import SEED, ExperimentRun, ExperimentRuns, Part, read_runs_file
from fedstage.plan.results import RESULTS
from fedstage.plan.runs import split_target
from fedstage.settings.cells import check_cells, selects, show_point
from fedstage.settings.scores import Axis
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
