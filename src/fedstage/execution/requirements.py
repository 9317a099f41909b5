"""The requirements of a run on this machine, checked before its first job."""

import hashlib
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from fedstage.errors import FedstageError, fault_of
from fedstage.execution.gpus import number_of
from fedstage.settings.base import Settings
from fedstage.settings.data_sets import DataSet
from fedstage.settings.models import Model
from fedstage.storage.raw_files import find_part, folder_of, raw_files

#: The extra of each package.
EXTRAS = {"torchao": "int8", "transformers": "text"}


def needed_packages(settings: Settings, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield each setting that needs such a package, ``quantisation = int8``, with the package."""
    if settings.package is not None:
        yield f"{key} = {getattr(settings, 'name', settings)}", settings.package
    for name, field in type(settings).model_fields.items():
        value, at = getattr(settings, name, None), field.alias or name
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, Settings):
                yield from needed_packages(part, f"{key}.{at}" if key else at)


_COUNT = "import torch; print(torch.cuda.device_count() if torch.cuda.is_available() else 0)"


def check_weights(model: Model, folder: Path | None, made: Path) -> None:
    """Refuse a model whose file of weights is missing, unless its initial weights are `made`.

    Raises
    ------
    FedstageError
        If there is no such file in the data folder, no data folder, or no checksum.
    """
    weights = getattr(model, "weights", None)
    if weights is None or made.exists():
        return
    if folder is not None and (path := folder / weights.file).is_file():
        if weights.sha256 is None:
            found = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
            raise FedstageError(f"model.weights.sha256: give {found}, which {path} has")
        return
    place = f"below {folder}" if folder else "and the data folder is not set"
    raise FedstageError(
        f"model.weights.file = {weights.file!r}: no such file {place}; put it there (it is never "
        "downloaded), or set data_folder in config.yaml or FEDSTAGE_DATA"
    )


def check_data(data: DataSet, folder: Path | None) -> None:
    """Refuse a data set with missing files, before its job does; no file is opened.

    Raises
    ------
    FedstageError
        If there is no data folder, or the set has no folder or lacks files in it.
    """
    if not data.in_folder:
        return
    where = f"data = {data.name}"
    if folder is None or not folder.is_dir():
        fault = f"data folder {folder}: no such folder" if folder else "the data folder is not set"
        raise FedstageError(f"{where}: {fault}; set data_folder in config.yaml or FEDSTAGE_DATA")
    with fault_of(where):
        if hasattr(data, "folder"):
            folder_of(data, folder)
        for part in raw_files(data, folder):
            find_part(data, folder, part)


def missing_data(data_sets: Iterable[DataSet], folder: Path | None) -> str | None:
    """Return a line if data sets are missing: about the first, and how many more there are."""
    missing = []
    for data in data_sets:
        try:
            check_data(data, folder)
        except FedstageError as error:
            missing.append(str(error))
    more = f" (and {len(missing) - 1} more data sets)" if len(missing) > 1 else ""
    return f"{missing[0]}{more}" if missing else None


def check_packages(settings: Settings) -> None:
    """Refuse settings that need a package which is not installed; nothing is imported.

    Raises
    ------
    FedstageError
        If there is such a package; the message names the extra that installs it, if any.
    """
    for needing, package in needed_packages(settings):
        if find_spec(package) is None:
            extra = EXTRAS.get(package)  # a plugin's package has none
            it = f"the extra {extra}: uv sync --extra {extra}" if extra else "it"
            raise FedstageError(
                f"{needing}: needs the package {package}, which is not installed; install {it}"
            )


def check_device(device: str) -> None:
    """Raise FedstageError if a `numerics.device` is a GPU that this machine lacks."""
    if not device.startswith("cuda"):
        return
    found = usable_gpus()
    if (number_of(device) or 0) >= found:
        raise FedstageError(
            f"numerics.device = {device!r}: this machine has {found} usable GPUs; use auto or cpu, "
            "or a profile that sends jobs to machines that have them"
        )


@cache
def usable_gpus() -> int:
    """Return how many GPUs torch can use; another process asks it, as plans do not import torch."""
    asked = [sys.executable, "-c", _COUNT]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    return int(done.stdout) if done.returncode == 0 else 0
