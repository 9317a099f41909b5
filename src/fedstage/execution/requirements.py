"""The requirements of a run on this machine, checked before its first job."""

import hashlib
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fedstage.data.excerpts import listed
from fedstage.data.layouts import find_files, in_layout, untested
from fedstage.errors import FedstageError, fault_of, how_to_install
from fedstage.execution.gpus import number_of
from fedstage.execution.pool import PYTHON
from fedstage.plan.data_files import AnyRecipe, data_file
from fedstage.plan.source import source_of
from fedstage.plan.syntax import key_of, recall, remember
from fedstage.protocol.digests import as_json, canonical
from fedstage.protocol.groups import has_batch_norm
from fedstage.protocol.teaching import teaching
from fedstage.settings.base import Settings, is_plugin
from fedstage.settings.data import Features
from fedstage.settings.data_sets import DataSet, Encoder, OfFiles
from fedstage.settings.models import InitialModel, Model, Pretrained, check_size
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.settings.recipes import Recipe
from fedstage.storage.files import load_json
from fedstage.storage.raw_files import find_part, folder_of, raw_files

#: The extra of each package.
EXTRAS = {"datasets": "hub", "timm": "vision", "torchao": "int8", "transformers": "text"}


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
    if not isinstance(weights, Pretrained) or made.exists():
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


#: Shapes of samples and numbers of classes that are known before a data set is read.
_CIFAR10 = ((3, 32, 32), 10)
_KNOWN = {"cifar10": _CIFAR10, "svhn": _CIFAR10, "cifar100": ((3, 32, 32), 100)}
_KNOWN["digits"] = ((1, 8, 8), 10)


def check_models(recipe: Any) -> None:
    """Refuse models that do not take the samples of a recipe's data, or its batches of one.

    A plugin's model is built and tried in another process, once, and so is one with batch
    normalisation that may see a batch of one. If the samples' shape is not known before they are
    read, the first job of a plugin's model tries it, and for batch normalisation the smallest
    images that a model takes count; `data.image_size` gives their size.

    Raises
    ------
    FedstageError
        If there is such a model; the message names it, what it got and what it gave.
    """
    if not isinstance(recipe, AnyRecipe):
        return
    shape, classes, train = _known(recipe.data)
    single, taught = _single(recipe, train), getattr(recipe, "distillation", None)
    main = getattr(recipe, "model", None)  # folders of one shot have what determines them alone
    student = [getattr(recipe, "student", None) or main] if taught else []
    models = (*(getattr(recipe, "architectures", None) or [main]), *student)
    for model in dict.fromkeys(model for model in models if model is not None):
        if shape is not None:
            check_size(model, shape)
        told = ""
        if is_plugin(model) and shape and classes:
            told = _tried(model, shape, classes, 1 if single else 2)
        elif single and has_batch_norm(model) and model.smallest:
            told = _tried(model, shape or (3, model.smallest, model.smallest), classes or 2, 1)
        if told:
            raise FedstageError(told + (f" ({single})" if "with 1 sample" in told else ""))


def _known(data: Any) -> tuple[tuple[int, ...] | None, int | None, int | None]:
    """Return the shape of a sample, and the numbers of classes and of training samples."""
    path = Path(data_file(data, "info"))
    if path.is_file():
        info = load_json(path)
        return tuple(info["shape"]), info["classes"], info["train"]
    if isinstance(data, Features):
        return None, *_known(data.of)[1:]
    size = getattr(data, "image_size", None) or getattr(data, "crop", None)
    shape, classes = ((3, size, size), None) if size else _KNOWN.get(data.name, (None, None))
    return shape, classes, getattr(data, "train_size", None)


def _single(recipe: AnyRecipe, train: int | None) -> str:
    """Return the setting that gives a batch of one sample, as far as that is known."""
    client = getattr(recipe, "client", None)
    taught = teaching(recipe) if isinstance(recipe, Recipe | OneShotRecipe) else None
    if client is not None and client.batch_size == 1:
        return "client.batch_size = 1"
    if taught is not None and taught.server.batch_size == 1:
        return "server.batch_size = 1"
    together = getattr(recipe, "pooled", False) or getattr(recipe, "on_core", False)
    if client is None or train is None or together or getattr(recipe, "core", None):
        return ""
    each, more = divmod(train, recipe.clients)
    left = {size % client.batch_size for size in (each, each + bool(more))}
    even = recipe.partition.name == "iid" and not recipe.validation
    if each < 2 or (client.last_batch == "keep" and even and 1 in left):
        last = f"client.last_batch = {client.last_batch}"
        return f"clients = {recipe.clients} with {train} samples, {last}"
    return ""


def _tried(model: Model, shape: tuple[int, ...], classes: int, least: int) -> str:
    """Return the fault of a job that builds a model for samples of this shape, empty if none."""
    settings = InitialModel.model_construct(model=model, seed=0)
    job = {"settings": canonical(settings), "shape": shape, "classes": classes, "least": least}
    source = as_json(source_of(settings, "initial_model").parts())
    key = key_of("model", as_json([job, version("torch")]).encode(), source.encode())
    if recall(key) is None:
        command = [*PYTHON, "fedstage.models.trial", as_json(job)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            return done.stderr.strip().rpartition("\n")[2]
        remember(key, [])
    return ""


def check_data(data: OfFiles, folder: Path | None) -> None:
    """Refuse a data set or partition with missing files, before its job does; no file is opened.

    Raises
    ------
    FedstageError
        If there is no data folder, or the set has no folder or lacks files in it.
    """
    if not data.in_folder:
        return
    kinds = {DataSet: "data", Encoder: "data.encoder"}
    key = next((key for kind, key in kinds.items() if isinstance(data, kind)), "partition")
    where = f"{key} = {data.name}"
    if folder is None or not folder.is_dir():
        fault = f"data folder {folder}: no such folder" if folder else "the data folder is not set"
        raise FedstageError(f"{where}: {fault}; set data_folder in config.yaml or FEDSTAGE_DATA")
    with fault_of(where):
        if hasattr(data, "folder"):
            folder_of(data, folder)
        for part in raw_files(data, folder):
            find_part(data, folder, part)
        if in_layout(data):
            find_files(data, folder)


def check_tested(data: DataSet, folder: Path | None) -> None:
    """Refuse own data for areas under the ROC curve if files for testing lack a class.

    Raises
    ------
    FedstageError
        With these classes.
    """
    if in_layout(data) and folder and (lacking := untested(data, folder)):
        raise FedstageError(
            f"table.metric = 'auc': no test sample of data = {data.name} is of class "
            f"{listed(lacking)}; add some, or choose balanced_accuracy"
        )


def missing_data(data_sets: Iterable[OfFiles], folder: Path | None) -> str | None:
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
            way = how_to_install(extra) if extra else "install it"
            raise FedstageError(
                f"{needing}: needs the package {package}, which is not installed; {way}"
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
