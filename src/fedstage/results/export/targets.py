"""``fedstage export``: the runs of a target for a program that shows experiments."""

from collections.abc import Callable, Sequence
from pathlib import Path

from fedstage.plan.results import RESULTS
from fedstage.plan.runs import split_target
from fedstage.results.at_hand.runs import read_finished
from fedstage.results.export import mlflow, tensorboard
from fedstage.results.export.runs import ExportedRun, exported

Writer = Callable[[str, Sequence[ExportedRun], Sequence[Path], Path], str]

#: The supported programs, each with the extra of the same name.
WRITERS: dict[str, Writer] = {"tensorboard": tensorboard.write, "mlflow": mlflow.write}


def export(target: str, to: str, into: Path, folder: Path = Path()) -> str:
    """Write all runs of a target below the folder `into`; return what was written.

    Parameters
    ----------
    target, folder
        As for `fedstage.results.load`.
    to : str
        A key of `WRITERS`.

    Raises
    ------
    FedstageError
        If there are no results of the target, a run is not finished, the extra is not installed,
        or the target was exported there before.
    """
    experiment = read_finished(target, folder)
    name = f"{experiment.experiment}/{experiment.scale}"
    runs = [exported(run, folder) for run in experiment.runs]
    shown = WRITERS[to](name, runs, files_of(target, folder), into)
    return f"{len(runs)} runs of {name} are in {into}; to look at them: {shown}"


def files_of(target: str, folder: Path) -> list[Path]:
    """Return the existing tables, figures and other results of a target, in order."""
    experiment, scale = split_target(target)
    places = (folder / RESULTS).glob(f"*/{experiment}/{scale}*")
    described = (folder / RESULTS / "descriptions" / experiment).glob("*.runs.json")
    scales = [path.name.removesuffix(".runs.json") for path in described]
    return sorted(path for path in places if path.is_file() and _is_of(path, scale, scales))


def _is_of(path: Path, scale: str, scales: Sequence[str]) -> bool:
    """Whether a file is of a scale, as ``SCALE_accuracy.png``, not of one with a longer name."""
    return scale == max((name for name in scales if path.name.startswith(name)), key=len)
