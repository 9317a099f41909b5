"""What a data set has, and what of it may be unintended."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import torch

from fedstage.data.datasets.images import Dataset
from fedstage.data.excerpts import alike, excerpt, have, listed, quoted
from fedstage.data.samples import contents

_FEW = 10  # fewer samples of a client than this are worth a notice


def named(names: Sequence[str]) -> str:
    """Return names in one line."""
    return listed([excerpt(name) for name in names])


def client_names(data: Dataset) -> Sequence[str]:
    """Return the clients' names, or their numbers."""
    clients = data.train.clients
    count = 0 if clients is None or not len(clients) else int(clients.max()) + 1
    return data.client_names or tuple(map(str, range(count)))


def odd(data: Dataset) -> Iterator[str]:
    """Yield what a run accepts, but may be unintended."""
    names, train_labels = data.class_names, data.train.labels.tolist()
    parts = (data.train, data.test, data.server_validation)
    counted = [torch.bincount(part.labels, minlength=len(names)) for part in parts]
    untested = [name for name, count in zip(names, counted[1].tolist(), strict=True) if not count]
    if untested:
        which = have(untested, f"of {len(names)} classes", f"of {len(names)} classes")
        yield f"{which} no test sample: {named(untested)}"
    if data.train.clients is not None:
        counts = torch.bincount(data.train.clients)
        few = [n for n, count in zip(client_names(data), counts, strict=True) if count < _FEW]
        if few:
            yield f"{have(few, 'client', 'clients')} fewer than {_FEW} samples: {named(few)}"
        yield from alike("clients", client_names(data))
    yield from alike("classes", names)
    total = torch.stack(counted).sum(0).tolist()
    if single := [quoted(name) for name, count in zip(names, total, strict=True) if count == 1]:
        yield f"{have(single, 'class', 'classes')} only one labelled sample: {listed(single)}"
    if data.constant:
        yield f"left out, as they are constant in the training rows: {named(data.constant)}"
    if data.train.starts is None:
        labels = defaultdict[int, set[int]](set)
        for content, label in zip(contents(data.train.images), train_labels, strict=True):
            labels[hash(content)].add(label)
        trained = labels.keys()
        if copies := len(train_labels) - len(trained):
            differ = sum(len(own) > 1 for own in labels.values())
            other = f"; samples with several labels: {differ}" if differ else ""
            yield f"{copies} of {len(train_labels)} training samples are copies of others{other}"
        again = sum(hash(content) in trained for content in contents(data.test.images))
        if again:
            yield f"{again} of {len(data.test.labels)} test samples are also training samples"


def described(data: Dataset) -> Iterator[str]:
    """Yield what a data set has: samples, classes, clients and features."""
    train, shape = data.train, list(data.train.images.shape[1:])
    parts = {"for training": train.labels, "for testing": data.test.labels,
             "held out": data.held_out, "of the server": data.server_validation.labels}  # fmt: skip
    counted = [f"{len(samples)} {part}" for part, samples in parts.items() if len(samples)]
    yield f"samples: {', '.join(counted)}; each of shape {shape}"
    yield f"classes: {_counted(data.class_names, train.labels)}"
    if train.clients is not None:
        yield f"clients: {_counted(client_names(data), train.clients)}"
    if data.feature_names is not None:
        yield f"features: {len(data.feature_names)}: {named(data.feature_names)}"


def _counted(names: Sequence[str], numbers: torch.Tensor) -> str:
    """Return names, each with its number of samples."""
    counts = torch.bincount(numbers, minlength=len(names)).tolist()
    told = [f"{excerpt(name)} ({count})" for name, count in zip(names, counts, strict=True)]
    return f"{len(names)}: {listed(told)}"
