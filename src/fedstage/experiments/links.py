"""Links to runs by their names: results/by_method.

The folder of a run is named by its settings and shared by experiments. The path of a link
identifies the run: ``results/by_method/EXPERIMENT/SCALE/feddf/seed_0``, or, if the grid has further
axes, ``.../feddf/partition.alpha=0.1,data=cifar10/seed_0``.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

from fedstage.errors import FedstageError
from fedstage.experiments.catalogue import Catalogue, choice_id
from fedstage.plan.results import BY_METHOD, RESULTS
from fedstage.plan.runs import Run, main_folder
from fedstage.settings.cells import run_name


def folder_of(run: Run) -> str:
    """Return the folder of a run's models and metrics; for a choice, the folder of its metrics."""
    if run.candidates:
        return f"{RESULTS}/choices/{choice_id(run)}"
    return main_folder(run.recipe)


def links_of(runs: Sequence[Run]) -> dict[str, str]:
    """Return the folder that each link leads to, for the runs of one experiment and scale.

    The names are relative to the folder of the experiment and scale, and contain all axes.
    """
    return {run_name(run.axes): folder_of(run) for run in runs}


def linked(results: Iterable[str]) -> list[tuple[str, str]]:
    """Return the experiments and scales of results such as ``results/KIND/EXPERIMENT/SCALE.md``."""
    places = (PurePosixPath(path) for path in results)
    return list(dict.fromkeys((path.parent.name, path.stem) for path in places))


def link_runs(catalogue: Catalogue, keys: Iterable[tuple[str, str]], root: Path) -> None:
    """Replace the links of experiments and scales below the working folder `root`.

    Runs without any files have no link. Other files in these folders stay.

    Raises
    ------
    FedstageError
        If links cannot be made here.
    """
    for experiment, scale in keys:
        folder = root / BY_METHOD / experiment / scale
        try:
            _remove(folder)
            for name, target in links_of(catalogue.runs[experiment, scale]).items():
                link = folder / name
                # A copy of results may have folders in place of links.
                if (root / target).is_dir() and not link.exists():
                    link.parent.mkdir(parents=True, exist_ok=True)
                    link.symlink_to(os.path.relpath(root / target, link.parent))
        except OSError as error:
            raise FedstageError(f"{folder}: links cannot be made ({error.strerror})") from None


def _remove(folder: Path) -> None:
    """Remove all links below a folder, and folders left empty."""
    for place, folders, files in os.walk(folder, topdown=False):
        for path in (Path(place, name) for name in (*folders, *files)):
            if path.is_symlink():
                path.unlink()
        if not any(Path(place).iterdir()):
            Path(place).rmdir()
