"""Event files that TensorBoard shows, one folder per run."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fedstage.errors import FedstageError
from fedstage.results.export.extras import check_extra
from fedstage.results.export.runs import ExportedRun


def write(target: str, runs: Sequence[ExportedRun], files: Sequence[Path], folder: Path) -> str:
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
