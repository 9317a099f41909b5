"""``fedstage export``: the runs of a target, for programs that show experiments.

Exports are made afterwards, from the file of scores: no training depends on such a program.
"""

import logging
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from fedstage.errors import FedstageError, how_to_install
from fedstage.experiments.runs_file import ExperimentRun, last_part, read_runs_file, runs_path
from fedstage.plan.results import RESULTS
from fedstage.plan.stages import FIGURES
from fedstage.protocol.digests import canonical
from fedstage.results.targets import read_target
from fedstage.results.tidy import Tidy
from fedstage.settings.cells import as_text, run_name


class Exported(NamedTuple):
    """A run: its name, its settings by dotted names, and its scores, such as test/auc, by round."""

    name: str
    settings: dict[str, Any]
    scores: list[tuple[str, int, float]]


def export(target: str, to: str, into: Path, folder: Path = Path()) -> str:
    """Write all runs of a target in a working folder below the folder `into`; say where.

    Settings are the content of ``recipe.yaml``, which leaves out defaults, the length of the run,
    and its values on the axes of the grid.

    Raises
    ------
    FedstageError
        If the target has no file of scores, the package `to`, a key of `WRITERS`, is not
        installed, or the target was exported there before.
    """
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # read when MLflow is imported
    try:
        import_module(to)
    except ImportError as error:
        fault = f"--to {to}: needs the package {to} ({error}); {how_to_install(to)}"
        raise FedstageError(fault) from None
    scores = read_target(target, folder=folder)
    runs = [_exported(run, scores) for run in read_runs_file(runs_path(target, folder)).runs]
    name, header = scores.header.target, scores.header
    own = re.compile(rf"{re.escape(header.scale)}(_({'|'.join(FIGURES)}|schedule))?\..+")
    made = sorted((folder / RESULTS).glob(f"*/{header.experiment}/*"))
    shown = WRITERS[to](name, runs, [path for path in made if own.fullmatch(path.name)], into)
    return f"{len(runs)} runs of {name} are in {into}; to look at them: {shown}"


def _exported(run: ExperimentRun, scores: Tidy) -> Exported:
    frame, part = scores.frame, last_part(run)
    own = pd.Series(data=True, index=frame.index)
    for axis in scores.run:
        own &= frame[axis].map(as_text) == as_text(run.settings[axis])
    if "client" in frame:  # scores of single clients and classes are in tables
        own &= frame["client"].isna() & frame["label"].isna()
    rows = frame[own].sort_values("round", kind="stable")
    values = zip(rows["role"] + "/" + rows["measure"], rows["round"], rows["value"], strict=True)
    settings = canonical(part.recipe) | canonical(part.length) | run.settings
    flat = pd.json_normalize(settings).to_dict("records")[0]
    known = {str(key): value if isinstance(value, int | float) else str(value)
             for key, value in flat.items() if value is not None}  # fmt: skip
    named = [(name, int(round_), float(value)) for name, round_, value in values]
    return Exported(run_name(run.settings), known, named)


def write_tensorboard(
    target: str, runs: Sequence[Exported], files: Sequence[Path], folder: Path
) -> str:
    """Write ``FOLDER/EXPERIMENT/SCALE/METHOD/seed_N`` for each run; return how to show them.

    Settings are hyperparameters. Tables in Markdown are texts in a separate run, ``tables``.
    """
    from torch.utils.tensorboard import SummaryWriter
    from torch.utils.tensorboard.summary import hparams

    place = folder / target
    if place.exists():  # event files are only ever added to
        raise FedstageError(f"{place}: is there already; delete it, or name another folder")
    for run in runs:
        with SummaryWriter(place / run.name) as writer:
            for name, round_, value in run.scores:
                writer.add_scalar(name, value, round_)
            # `add_hparams` would write each score again, in round 0 of a subfolder.
            for summary in hparams(run.settings, {name: 0.0 for name, *_ in run.scores}):
                writer.file_writer.add_summary(summary)
    with SummaryWriter(place / "tables") as writer:
        for path in files:
            if path.suffix == ".md":
                writer.add_text(f"{path.parent.parent.name}/{path.stem}", path.read_text("utf-8"))
    return f"tensorboard --logdir {folder}"


def write_mlflow(target: str, runs: Sequence[Exported], files: Sequence[Path], folder: Path) -> str:
    """Write ``FOLDER/mlflow.db`` and artefacts next to it; return the command that shows them.

    The experiment has the name of the target. A run of this name has all tables and figures as
    artefacts; below it is each run with its settings as parameters.
    """
    import mlflow
    from mlflow.entities import Metric, Param

    for name in ("mlflow", "alembic"):
        logging.getLogger(name).setLevel(logging.WARNING)
    folder.mkdir(parents=True, exist_ok=True)
    client = mlflow.MlflowClient(tracking_uri=f"sqlite:///{(folder / 'mlflow.db').absolute()}")
    if client.get_experiment_by_name(target) is not None:
        raise FedstageError(f"{folder}: has {target} already; delete it, or name another folder")
    artefacts = (folder / "artefacts" / target).absolute().as_uri()
    experiment = client.create_experiment(target, artifact_location=artefacts)
    parent = client.create_run(experiment, run_name=target).info.run_id
    for path in files:
        client.log_artifact(parent, str(path), path.parent.parent.name)
    now = int(1000 * time.time())
    for run in runs:
        tags = {"mlflow.parentRunId": parent}
        own = client.create_run(experiment, run_name=run.name, tags=tags).info.run_id
        for some in _batches([Metric(name, value, now, at) for name, at, value in run.scores]):
            client.log_batch(own, metrics=some)
        for some in _batches([Param(key, str(value)) for key, value in run.settings.items()]):
            client.log_batch(own, params=some)
        client.set_terminated(own)
    client.set_terminated(parent)
    show = f"uvx mlflow@{mlflow.__version__} ui --backend-store-uri sqlite:///mlflow.db"
    return f"cd {folder} && {show}"


def _batches(items: list[Any], size: int = 100) -> Iterator[list[Any]]:
    """Yield as many at a time as MLflow takes."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


#: The supported programs, each with the package and the extra of the same name.
WRITERS: dict[str, Callable[[str, Sequence[Exported], Sequence[Path], Path], str]] = {
    "tensorboard": write_tensorboard,
    "mlflow": write_mlflow,
}
