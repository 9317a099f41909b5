"""A user's own samples: label, client and group of each by name, and which are for testing."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from fedstage.data.datasets.images import Dataset, Images
from fedstage.data.datasets.splits import Rows, Split, choose_rows, permutation
from fedstage.data.excerpts import listed, quoted
from fedstage.data.layouts import are_splits
from fedstage.errors import FedstageError
from fedstage.settings.data_sets import Drawn, Sized

_LOGGER = logging.getLogger(__name__)


class Named(NamedTuple):
    """The class, client or category of each row, int64 [n], as a position among sorted names."""

    numbers: Rows
    names: tuple[str, ...]

    def of(self, rows: Rows) -> "Named":
        """Return the numbers of some rows, with the names that occur there."""
        kept, numbers = np.unique(self.numbers[rows], return_inverse=True)
        names = tuple(self.names[number] for number in kept.tolist())
        return Named(numbers.astype(np.int64), names)

    def among(self, rows: Rows, names: Sequence[str]) -> Rows:
        """Return the position in `names` of the name of each row; -1 if it is not there."""
        places = {name: place for place, name in enumerate(names)}
        found = np.array([places.get(name, -1) for name in self.names], np.int64)
        return found[self.numbers[rows]]


def named(values: Sequence[str]) -> Named:
    """Return texts as positions among their sorted names."""
    names, numbers = np.unique(values, return_inverse=True)
    return Named(numbers.astype(np.int64), tuple(names.tolist()))


@dataclass(frozen=True)
class Labelled:
    """All rows, with the training rows first."""

    labels: Named
    clients: Named | None  #: of all rows, or of the training rows if the others have none
    groups: Named | None  #: whose rows are either for training or for testing; known as clients are
    train: int  #: rows for training; the others are for testing
    order: Rows  #: where each row is in the files

    def split(self, settings: Sized) -> Split:
        """Choose the rows of each part; see `choose_rows`."""
        return choose_rows(settings, self.train, len(self.order) - self.train)

    def dataset(self, split: Split, samples: Callable[[Rows], torch.Tensor]) -> Dataset:
        """Return the parts of a split as a data set, with the `samples` of some rows.

        Clients are numbered in the order of their names, as classes are, and have training rows.
        """
        clients = None if self.clients is None else self.clients.of(split.train)
        self._tell_groups(split)

        def part(own: Rows) -> Images:
            labels = torch.from_numpy(self.labels.numbers[own])
            if self.clients is None or clients is None or not _known(self.clients, own):
                return Images(samples(own), labels)
            owners = self.clients.among(own, clients.names)
            return Images(samples(own), labels, torch.from_numpy(owners))

        names = None if clients is None else clients.names
        return split.dataset(part, self.labels.names, client_names=names)

    def _tell_groups(self, split: Split) -> None:
        """Say which groups are in training and test samples."""
        if self.groups is None or not _known(self.groups, split.test):
            return
        trained, tested = (set(self.groups.numbers[own]) for own in (split.train, split.test))
        if both := sorted(trained & tested):
            told = listed([quoted(self.groups.names[number]) for number in both])
            _LOGGER.warning("%d groups have training and test samples: %s", len(both), told)

    def drawn(self, settings: Drawn, fraction: float | None = None) -> "Labelled":
        """Return the rows, with a share of each client's samples of each class last, for testing.

        The share is `test_fraction`, or else `fraction`, if any. With groups, it is a share of the
        groups, each by its first row.

        Raises
        ------
        FedstageError
            If no row is for testing, or if the clients are named as splits are.
        """
        if self.clients is not None and are_splits(self.clients.names):
            told = ", ".join(self.clients.names)
            raise FedstageError(f"clients are {told}: these are splits, and no clients")
        fraction = settings.test_fraction or fraction
        if fraction is None:
            return self
        numbers = self.labels.numbers
        owners = np.zeros_like(numbers) if self.clients is None else self.clients.numbers
        first = group = np.arange(len(numbers))
        if self.groups is not None:
            _, first, group = np.unique(self.groups.numbers, return_index=True, return_inverse=True)
        shuffled = permutation(settings.split_seed, "table", len(first))
        tested = rows_for_testing(fraction, shuffled, numbers[first], owners[first])[group]
        train, test = np.flatnonzero(~tested), np.flatnonzero(tested)
        if not len(test):
            fault = f"none of {len(numbers)} rows is for testing"
            raise FedstageError(f"data.test_fraction = {fraction:g}: {fault}")
        order = np.concatenate([train, test])
        named = {key: getattr(self, key) for key in ("labels", "clients", "groups")}
        ordered = {key: own and own._replace(numbers=own.numbers[order])
                   for key, own in named.items()}  # fmt: skip
        return Labelled(**ordered, train=len(train), order=self.order[order])


def _known(names: Named, rows: Rows) -> bool:
    """Whether the names of some rows are known."""
    return bool((rows < len(names.numbers)).all())


def rows_for_testing(fraction: float, shuffled: Rows, labels: Rows, clients: Rows) -> np.ndarray:
    """Return a mask, bool [n], of the rows for testing, a share of each class of each client.

    The rows are put in the order of clients, then classes, then `shuffled`, and evenly spaced rows
    are taken. The number of rows per client, and per class of a client, is thus within 1 of its
    share. A client that would lose all rows keeps one.
    """
    ranks = np.empty_like(shuffled)
    ranks[shuffled] = np.arange(len(shuffled))
    order = np.lexsort((ranks, labels, clients))
    ends = np.floor(np.arange(len(order) + 1) * fraction + 1e-9)  # 0.29 * 100 is below 29
    tested = np.zeros(len(order), bool)
    tested[order] = ends[1:] > ends[:-1]
    for client in np.unique(clients):
        own = np.flatnonzero(clients == client)
        if tested[own].all():
            tested[own[0]] = False
    return tested
