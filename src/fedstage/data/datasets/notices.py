"""What a run accepts of a user's own samples, but may be unintended."""

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches

import torch

from fedstage.data.datasets.images import Dataset
from fedstage.data.excerpts import alike, excerpt, have, listed, plain, quoted
from fedstage.data.samples import contents

_FEW = 10  # fewer samples of a client than this are worth a notice
_SIMILAR = 0.8  # share of common letters from which one of two names is a typo
_MANY = 1000  # classes that are not compared with one another


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
    names = data.class_names
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
    yield from _single(names, torch.stack(counted).sum(0).tolist())
    if data.constant:
        yield f"left out, as they are constant in the training rows: {named(data.constant)}"
    if data.train.starts is None:
        trained = {hash(content) for content in contents(data.train.images)}
        again = sum(hash(content) in trained for content in contents(data.test.images))
        if again:
            yield f"{again} of {len(data.test.labels)} test samples are also training samples"


def _single(names: Sequence[str], counts: Sequence[int]) -> Iterator[str]:
    """Yield classes of a single labelled sample, first the ones spelled nearly like others."""
    single = [name for name, count in zip(names, counts, strict=True) if count == 1]
    typos = {name: near for name in single if (near := _similar(name, names))}
    for name, near in typos.items():
        similar = f"and is similar to {quoted(near)}; a typo?"
        yield f"class {quoted(name)} has only one labelled sample, {similar}"
    others = [name for name in single if name not in typos]
    if others:
        which = have(others, "class", "classes")
        yield f"{which} only one labelled sample: {listed([quoted(name) for name in others])}"


def _similar(name: str, names: Sequence[str]) -> str | None:
    """Return another name that is spelled nearly like this one, numbers aside."""
    if len(names) > _MANY:
        return None
    others = [other for other in names if _letters(other) != _letters(name)]
    return next(iter(get_close_matches(name, others, n=1, cutoff=_SIMILAR)), None)


def _letters(name: str) -> str:
    """Return a name for comparison, regardless of numbers, case and spaces."""
    return re.sub(r"\d+", "0", plain(name))
