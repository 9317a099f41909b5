"""``fedstage export``: the runs of a target, for programs that show experiments.

Exports are made afterwards, from metrics and tables: no training depends on such a program.
"""

import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from fedstage.errors import FedstageError
from fedstage.execution.exported_runs import ExportedRun, exported
from fedstage.experiments.found_runs import read_finished
from fedstage.plan.results import RESULTS
from fedstage.plan.runs import split_target


def check_extra(package: str) -> None:
    """Refuse an export whose package is missing; its extra has the name of the export.

    Raises
    ------
    FedstageError
        If the package cannot be imported.
    """
    try:
        import_module(package)
    except ImportError as error:
        raise FedstageError(
            f"--to {package}: needs the package {package} ({error}); install the extra {package}: "
            f"uv sync --extra {package}"
        ) from None


# --- TensorBoard ----------------------------------------------------------------------------------


def write_tensorboard(
    target: str, runs: Sequence[ExportedRun], files: Sequence[Path], folder: Path
) -> str:
    """Write ``FOLDER/EXPERIMENT/SCALE/METHOD/seed_N`` for each run; return how to show them.

    Settings are hyperparameters, with the last value of each scalar. Tables in Markdown are texts
    in a separate run, ``tables``.

    Raises
    ------
    FedstageError
        If TensorBoard is not installed, or the target is in the folder already: event files are
        only ever added to.
    """
    check_extra("tensorboard")
    place = folder / target
    if place.exists():
        raise FedstageError(f"{place}: is there already; delete it, or name another folder")
    for run in runs:
        _write(place / run.name, run)
    if tables := [path for path in files if path.suffix == ".md"]:
        _write_texts(place / "tables", tables)
    return f"tensorboard --logdir {folder}"


def _write(place: Path, run: ExportedRun) -> None:
    from torch.utils.tensorboard.summary import hparams

    with _opened(place) as writer:
        for name, series in run.scalars.items():
            for round_, value in series:
                writer.add_scalar(name, value, round_)
        # `add_hparams` would write each score again, in round 0 of a subfolder.
        for summary in hparams(run.settings, dict.fromkeys(run.scalars, 0.0)):
            writer.file_writer.add_summary(summary)


def _write_texts(place: Path, tables: Sequence[Path]) -> None:
    with _opened(place) as writer:
        for path in tables:
            writer.add_text(f"{path.parent.parent.name}/{path.stem}", path.read_text("utf-8"))


def _opened(place: Path) -> Any:
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(place)


# --- MLflow ---------------------------------------------------------------------------------------

_METRICS, _PARAMS = 1000, 100  # that MLflow takes in one call


def write_mlflow(
    target: str, runs: Sequence[ExportedRun], files: Sequence[Path], folder: Path
) -> str:
    """Write ``FOLDER/mlflow.db`` and artefacts next to it; return the command that shows them.

    The experiment has the name of the target. A run of this name has all tables and figures as
    artefacts; below it is each run with its settings as parameters.

    Raises
    ------
    FedstageError
        If MLflow is not installed, or the target is in the database already.
    """
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # read when MLflow is imported
    check_extra("mlflow")
    client = _client(folder)
    if client.get_experiment_by_name(target) is not None:
        raise FedstageError(f"{folder}: has {target} already; delete it, or name another folder")
    artefacts = (folder / "artefacts" / target).absolute().as_uri()
    experiment = client.create_experiment(target, artifact_location=artefacts)
    parent = client.create_run(experiment, run_name=target).info.run_id
    for path in files:
        client.log_artifact(parent, str(path), path.parent.parent.name)
    for run in runs:
        tags = {"mlflow.parentRunId": parent}
        run_id = client.create_run(experiment, run_name=run.name, tags=tags).info.run_id
        _log(client, run_id, run)
        client.set_terminated(run_id)
    client.set_terminated(parent)
    return f"cd {folder} && uvx mlflow@{_version()} ui --backend-store-uri sqlite:///mlflow.db"


def _client(folder: Path) -> Any:
    """Return a client of the database in a folder; both are created without messages."""
    from mlflow.tracking import MlflowClient

    for name in ("mlflow", "alembic"):
        logging.getLogger(name).setLevel(logging.WARNING)
    folder.mkdir(parents=True, exist_ok=True)
    return MlflowClient(tracking_uri=f"sqlite:///{(folder / 'mlflow.db').absolute()}")


def _log(client: Any, run_id: str, run: ExportedRun) -> None:
    from mlflow.entities import Param

    params = [Param(key, str(value)) for key, value in run.settings.items()]
    for some in _batches(list(_metrics(run)), _METRICS):
        client.log_batch(run_id, metrics=some)
    for some in _batches(params, _PARAMS):
        client.log_batch(run_id, params=some)


def _batches(items: list[Any], size: int) -> Iterator[list[Any]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def _metrics(run: ExportedRun) -> Iterator[Any]:
    from mlflow.entities import Metric

    now = int(1000 * time.time())
    for name, series in run.scalars.items():
        for round_, value in series:
            yield Metric(name, value, now, round_)


def _version() -> str:
    import mlflow

    return str(mlflow.__version__)


# --- targets --------------------------------------------------------------------------------------

Writer = Callable[[str, Sequence[ExportedRun], Sequence[Path], Path], str]

#: The supported programs, each with the extra of the same name.
WRITERS: dict[str, Writer] = {"tensorboard": write_tensorboard, "mlflow": write_mlflow}


def export(target: str, to: str, into: Path, folder: Path = Path()) -> str:
    """Write all runs of a target below the folder `into`; return what was written.

    Parameters
    ----------
    target, folder
        As for `fedstage.results.scores`.
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
