"""Checks against what is known of the data before they are read: samples, shape and classes."""

from collections.abc import Iterator, Sequence

from fedstage.settings.data import Data
from fedstage.settings.data_sets import DataSet
from fedstage.settings.local_training import LocalTraining
from fedstage.settings.models import EfficientNet, LogisticRegression, Model, Transformer, Upper
from fedstage.settings.optimisation import Client
from fedstage.settings.partitions import Core, Partition
from fedstage.settings.public import Public


def check_known(
    data: Data,
    clients: int,
    partition: Partition,
    core: Core | None,
    models: Sequence[Model],
    client: Client,
) -> Iterator[str]:
    """Yield settings that are impossible with these data, as far as their sizes are known."""
    yield from _check_division(data, clients, partition, core)
    for model in dict.fromkeys(models):
        yield from _check_model(data, model)
    weights = client.loss.class_weights if client.loss.name == "focal" else None
    classes = data.known.classes
    if weights is not None and classes is not None and len(weights) != classes:
        yield (
            f"client.loss = focal: {len(weights)} class_weights: must be one for each class, and "
            f"data = {data.name} has {classes}"
        )


def _check_division(
    data: Data, clients: int, partition: Partition, core: Core | None
) -> Iterator[str]:
    """Yield a fault if there are fewer samples, classes or centres than the partition needs."""
    shares, own = clients + (core is not None), " and the server's core" if core else ""
    if partition.name == "natural" and data.centres not in (None, shares):
        yield (
            f"clients = {clients}{own}: must be {data.centres} in all, the centres of data = "
            f"{data.name} (partition = natural)"
        )
    classes, parts = data.known.classes, data.known.parts
    if partition.name == "shards" and classes is not None:
        yield from _at_most("partition.classes_per_client", partition.classes_per_client, classes,
                            f"the classes of data = {data.name}")  # fmt: skip
    if parts is None:
        return
    training = f"{parts.train} training samples of data = {data.name}"
    if shares > parts.train:
        yield f"clients = {clients}{own}: at most the {training}, one each"
    for key in ("min_samples", "classes_per_client"):
        yield from _at_most(f"partition.{key}", getattr(partition, key, 0), parts.train // shares,
                            f"as {shares} clients{own} share {training}")  # fmt: skip


def _at_most(key: str, value: int, most: int, reason: str) -> Iterator[str]:
    if value > most:
        yield f"{key} = {value}: at most {most}, {reason}"


def _check_model(data: Data, model: Model) -> Iterator[str]:
    """Yield a fault if a model does not take samples of this shape, or so many classes."""
    shape, classes, where = data.known.shape, data.known.classes, f"model = {model.name!r}"
    if isinstance(model, LogisticRegression) and model.outputs == 1 and classes not in (None, 2):
        yield f"{where}: outputs = 1: only for 2 classes, and data = {data.name} has {classes}"
    if shape is None or isinstance(model, Upper):
        return
    if isinstance(model, Transformer) and model.positions < shape[0]:
        yield (
            f"model.positions = {model.positions}: must be at least {shape[0]}, the tokens of a "
            f"text of data = {data.name}"
        )
    if data.samples != "images":
        return
    if model.smallest is not None and min(shape[1:]) < model.smallest:
        sides = "x".join(map(str, shape[1:]))
        yield (
            f"{where}: needs images of at least {model.smallest}x{model.smallest} pixels, and "
            f"the images of data = {data.name} have {sides}"
        )
    if isinstance(model, EfficientNet) and shape[0] != 3:
        yield f"{where}: needs 3 channels, and images of data = {data.name} have {shape[0]}"


def check_classes(local: LocalTraining, classes: int | None) -> Iterator[str]:
    """Yield a fault if the data have fewer classes, None if unknown, than a local trainer needs."""
    if classes is not None and classes < local.fewest_classes:
        fewest = local.fewest_classes
        yield f"local = {local.name}: needs at least {fewest} classes, and the data have {classes}"


def check_channels(data: DataSet, public: Public) -> Iterator[str]:
    """Yield a fault if public images have other channels than the clients', so no model fits."""
    if not isinstance(public, DataSet):
        return
    own, other = data.known.shape, public.known.shape
    if own is not None and other is not None and own[0] != other[0]:
        yield (
            f"public = {public.name}: images of shape {list(other)}, and the images of "
            f"data = {data.name}, which the models are for, have {list(own)}"
        )
