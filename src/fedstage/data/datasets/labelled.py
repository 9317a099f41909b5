"""A user's own samples: the label and client of each by name, and which are for testing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from fedstage.data.datasets.images import Dataset, Images
from fedstage.data.datasets.splits import Rows, Split, choose_rows, permutation
from fedstage.errors import FedstageError
from fedstage.settings.data_sets import Sized


@dataclass(frozen=True)
class Named:
    """The class or client of each row, int64 [n], as a position among sorted names."""

    numbers: Rows
    names: tuple[str, ...]

    def of(self, rows: Rows, *, every: bool = False) -> "Named":
        """Return the numbers of some rows, with the names that occur there, or `every` name."""
        own = self.numbers[rows]
        if every:
            return Named(own, self.names)
        kept, numbers = np.unique(own, return_inverse=True)
        return Named(
            numbers.astype(np.int64), tuple(self.names[number] for number in kept.tolist())
        )

    def among(self, rows: Rows, names: Sequence[str]) -> Rows:
        """Return the position in `names` of the name of each row; -1 if it is not there."""
        places = {name: place for place, name in enumerate(names)}
        found = np.array([places.get(name, -1) for name in self.names], np.int64)
        return found[self.numbers[rows]]


def named(values: Sequence[Any]) -> Named:
    """Return values, all integers or all texts, as positions among their sorted names."""
    names = sorted(set(values))
    numbers = {value: number for number, value in enumerate(names)}
    found = np.array([numbers[value] for value in values], np.int64)
    return Named(found, tuple(map(str, names)))


@dataclass(frozen=True)
class Labelled:
    """All rows, with the training rows first."""

    labels: Named
    clients: Named | None  #: of all rows, or of the training rows if the others have none
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

        def part(own: Rows) -> Images:
            labels = torch.from_numpy(self.labels.numbers[own])
            if self.clients is None or clients is None or not self._known(own):
                return Images(samples(own), labels)
            owners = self.clients.among(own, clients.names)
            return Images(samples(own), labels, torch.from_numpy(owners))

        return Dataset(
            train=part(split.train),
            test=part(split.test),
            held_out=samples(split.held_out),
            server_validation=part(split.server_validation),
            class_names=self.labels.names,
            client_names=None if clients is None else clients.names,
        )

    def _known(self, rows: Rows) -> bool:
        """Whether the clients of some rows are known."""
        assert self.clients is not None, "the caller looks"
        return bool((rows < len(self.clients.numbers)).all())

    def divided(self, fraction: float, split_seed: int) -> "Labelled":
        """Return the rows, with a share of each client's samples of each class last, for testing.

        Raises
        ------
        FedstageError
            If no row is for testing.
        """
        labels, clients = self.labels.numbers, self.clients
        owners = np.zeros_like(labels) if clients is None else clients.numbers
        shuffled = permutation(split_seed, "table", len(labels))
        tested = rows_for_testing(fraction, shuffled, labels, owners)
        train, test = np.flatnonzero(~tested), np.flatnonzero(tested)
        if not len(test):
            raise FedstageError(
                f"data.test_fraction = {fraction:g}: none of {len(labels)} rows is for testing"
            )
        order = np.concatenate([train, test])
        return replace(
            self,
            labels=self.labels.of(order, every=True),
            clients=None if clients is None else clients.of(order, every=True),
            train=len(train),
            order=self.order[order],
        )


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
