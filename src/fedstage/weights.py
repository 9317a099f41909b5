"""Weights of a model, the one type that all rooms exchange."""

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:  # stages that only read tables do not wait for torch
    import torch

#: Tensors by name: a model's parameters and buffers, or anything else that is stored like them.
Weights = dict[str, "torch.Tensor"]

#: The same, of which nothing but single tensors is taken: they may be `Deferred`.
Tensors = Mapping[str, "torch.Tensor"]


class Entry(NamedTuple):
    """A tensor that is not made yet."""

    like: "torch.Tensor"  # of its shape and type; its values do not count
    make: "Callable[[], torch.Tensor]"


class Deferred(Mapping[str, "torch.Tensor"]):
    """Tensors by name of which each is read or computed when it is taken, and not kept.

    So a sum over many models, name by name, needs memory for one tensor of each at a time.
    """

    def __init__(self, entries: Mapping[str, Entry]) -> None:
        self.entries = dict(entries)

    def __getitem__(self, name: str) -> "torch.Tensor":
        return self.entries[name].make()

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __contains__(self, name: object) -> bool:
        return name in self.entries


def entries_of(tensors: Tensors) -> dict[str, Entry]:
    """Return how to make each tensor; those at hand are as they are."""
    if isinstance(tensors, Deferred):
        return dict(tensors.entries)
    return {name: Entry(one, partial(_itself, one)) for name, one in tensors.items()}


def shapes_of(tensors: Tensors) -> Weights:
    """Return tensors of the same shapes and types, whose values do not count; nothing is read."""
    return {name: entry.like for name, entry in entries_of(tensors).items()}


def renamed(tensors: Tensors, names: Mapping[str, str]) -> Tensors:
    """Return the tensors of these names under new ones (old: new), deferred if they were."""
    if isinstance(tensors, Deferred):
        return Deferred({new: tensors.entries[old] for old, new in names.items()})
    return {new: tensors[old] for old, new in names.items()}


def without(tensors: Tensors, names: Collection[str]) -> Tensors:
    """Return all other tensors, deferred if they were."""
    return renamed(tensors, {name: name for name in tensors if name not in names})


def together(*parts: Tensors) -> Tensors:
    """Return all tensors of several mappings; of equal names the last."""
    if not any(isinstance(part, Deferred) for part in parts):
        return {name: one for part in parts for name, one in part.items()}
    return Deferred({name: one for part in parts for name, one in entries_of(part).items()})


def _itself(tensor: "torch.Tensor") -> "torch.Tensor":
    return tensor
