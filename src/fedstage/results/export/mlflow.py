"""A database that MLflow shows: one of its experiments per target, one of its runs per run."""

import logging
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from fedstage.errors import FedstageError
from fedstage.results.export.extras import check_extra
from fedstage.results.export.runs import ExportedRun

_METRICS, _PARAMS = 1000, 100  # that MLflow takes in one call


def write(target: str, runs: Sequence[ExportedRun], files: Sequence[Path], folder: Path) -> str:
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
