"""Samples as users have them, as the tensors of a data set in a folder named by their content."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors.torch import save as serialised

from fedstage.data.datasets.tensors import check
from fedstage.data.partitions import divide
from fedstage.errors import FedstageError
from fedstage.randomness import numpy_generator
from fedstage.settings.partitions import Dirichlet
from fedstage.storage.files import replacing
from fedstage.weights import Weights


class Samples(NamedTuple):
    """Samples for `fedstage.run`, which divides them over `clients` in each seed.

    How is its argument `partition`, such as ``{"dirichlet": {"alpha": 0.1}}``. `x` and `y` are
    tensors or arrays: images, uint8 [n, C, H, W], or features of any shape, floats [n, ...]; and
    their classes 0, 1, ..., [n].
    """

    x: Any
    y: Any
    clients: int


def partition(
    x: Any, y: Any, *, clients: int, alpha: float, min_samples: int = 10, seed: int = 0
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return the samples of each client as pairs (x, y).

    `x` and `y` are as in `Samples`. Each class is divided in proportions from Dir(alpha), as by the
    partition `dirichlet` in a run with this seed, so that each client has `min_samples`.

    Raises
    ------
    FedstageError
        If not every client can get as many samples.
    """
    found = _labelled((x, y), "x, y")
    scheme = Dirichlet(name="dirichlet", alpha=alpha, min_samples=min_samples)
    draws = numpy_generator(seed, "partition", "clients")
    shares = divide(scheme, found["y"].numpy(), clients, draws)
    return [(found["x"][own], found["y"][own]) for own in map(np.sort, shares)]


def parts(clients: Samples | Sequence[Any], test: Any, public: Any) -> dict[str, Weights]:
    """Return the tensors of each file of a data set."""
    pool = isinstance(clients, Samples)
    train = _labelled(clients[:2], "clients") if pool else _joined(clients)
    made = {"train": train}
    if test is not None:
        made["test"] = _labelled(test, "test", train["x"])
    if public is not None:
        made["public"] = {"x": _samples(public)}
        check("public", made["public"], train["x"])
    return made


def _joined(clients: Sequence[Any]) -> Weights:
    owned: list[Weights] = []
    for number, own in enumerate(clients):
        like = owned[0]["x"] if owned else None
        owned.append(_labelled(own, f"clients[{number}]", like))
        owned[-1]["clients"] = torch.full_like(owned[-1]["y"], number)
    if not owned:
        raise FedstageError("clients: there must be at least one")
    return {name: torch.cat([own[name] for own in owned]) for name in owned[0]}


def _labelled(given: Any, where: str, like: torch.Tensor | None = None) -> Weights:
    """Return a pair, or a torch Dataset, as samples and classes."""
    if isinstance(given, torch.utils.data.Dataset):
        pairs = [given[n] for n in range(len(given))]  # type: ignore[arg-type]
        given = torch.stack([torch.as_tensor(x) for x, _ in pairs]), [int(y) for _, y in pairs]
    if not (isinstance(given, tuple | list) and len(given) == 2):
        raise FedstageError(f"{where}: must be (x, y), tensors or arrays, or a torch Dataset")
    y = torch.as_tensor(given[1])
    tensors = {"x": _samples(given[0]), "y": y if y.is_floating_point() else y.long()}
    check(where, tensors, like)
    return tensors


def _samples(given: Any) -> torch.Tensor:
    x = torch.as_tensor(given)
    return (x.float() if x.is_floating_point() else x).cpu().contiguous()


def save(made: dict[str, Weights], folder: Path) -> str:
    """Write the files below a folder, unless they are there, and return their folder's name."""
    files = {part: serialised(tensors) for part, tensors in made.items()}
    digest = hashlib.sha256()
    for content in files.values():
        digest.update(content)
    name = f"samples-{digest.hexdigest()[:12]}"
    for part, content in files.items():
        if not (path := folder / name / f"{part}.safetensors").exists():
            with replacing(path) as temporary:
                temporary.write_bytes(content)
    return name
