"""Which samples are kept for training, for testing, and held out without their labels.

The choice depends only on `split_seed` and the sizes of the data set. Samples stay in the data
set's order. Training takes the first rows of a permutation, the held-out part the last, and the
server's validation set the rows before them. A larger `train_size` thus keeps all samples of a
smaller one, and lines with and without the other parts train on the same samples, if there are
enough.

With a `division` there is one permutation of all samples, and each part is a section of it; the
server's validation set is the end of the training section.

Of a user's own samples, the label, client and group of each are known by name, and those for
testing may be drawn.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from fedstage.data.datasets.images import Dataset, Images
from fedstage.data.excerpts import alike, listed, quoted
from fedstage.data.layouts import are_splits
from fedstage.errors import FedstageError, each
from fedstage.randomness import numpy_generator
from fedstage.settings.data_sets import Drawn, Sized

_LOGGER = logging.getLogger(__name__)

Rows: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class Split:
    """Ascending row numbers that count over all samples: first official training, then test."""

    train: Rows
    test: Rows
    held_out: Rows
    server_validation: Rows

    def dataset(
        self, samples: Callable[[Rows], Images], class_names: tuple[str, ...], **known: Any
    ) -> Dataset:
        """Return a data set with the `samples` of each part's rows; the faults of all are told."""
        parts = each(samples, [self.train, self.test, self.held_out, self.server_validation])
        train, test, public, own = parts
        return Dataset(train, test, public.images, own, class_names, **known)


def choose_rows(settings: Sized, train: int, test: int) -> Split:
    """Choose rows of a data set that has `train` training samples and, after them, `test` others.

    Raises
    ------
    FedstageError
        If there are fewer samples than a size, or a share of the division has none.
    """
    if settings.division is not None:
        pool, held_out, tests = _divided(settings.division, settings.split_seed, train + test)
        reason = f"{len(pool)} for training, division = {list(settings.division)}"
    else:
        check_size("held_out", settings.held_out, train - 1, f"{train} for training, one must stay")
        order = permutation(settings.split_seed, "train", train)
        pool, held_out = np.split(order, [train - settings.held_out])
        tests = train + permutation(settings.split_seed, "test", test)
        reason = f"{train} for training, held_out = {settings.held_out}"
    own = settings.server_validation
    check_size("server_validation", own, len(pool) - 1, f"{reason}, one must stay")
    remaining = len(pool) - own
    kept = settings.train_size or remaining
    if settings.train_fraction is not None:
        kept = max(1, round(settings.train_fraction * remaining))
    check_size("train_size", kept, remaining, f"{reason}, server_validation = {own}")
    tested = settings.test_size or len(tests)
    check_size("test_size", tested, len(tests), f"{len(tests)} for testing")
    chosen = (pool[:kept], tests[:tested], held_out, pool[remaining:])
    return Split(*map(np.sort, chosen))


def _divided(shares: tuple[int, int, int], seed: int, n: int) -> list[Rows]:
    """Cut one permutation of all samples at the shares, in whole numbers rounded down."""
    ends = [n * end // sum(shares) for end in accumulate(shares)]
    parts = np.split(permutation(seed, "division", n), ends[:-1])
    if any(share and not len(part) for share, part in zip(shares, parts, strict=True)):
        fault = f"each share must have a sample, and there are {n}"
        raise FedstageError(f"data.division = {list(shares)}: {fault}")
    return parts


def check_size(key: str, value: int, available: int, reason: str) -> None:
    """Refuse `value`, the number of samples of setting `key`, unless that many are available."""
    if value > available:
        raise FedstageError(f"data.{key} = {value}: at most {available} (there are {reason})")


def rows_by_part(sizes: Iterable[int], rows: Rows) -> Iterator[Rows]:
    """Yield the rows of each part, where `rows` (ascending) count over all parts of these sizes."""
    start = 0
    for size in sizes:
        end = start + size
        yield rows[np.searchsorted(rows, start) : np.searchsorted(rows, end)] - start
        start = end


def permutation(split_seed: int, purpose: str, n: int) -> Rows:
    """Permute the row numbers 0..n-1; the same seed and purpose always give the same order."""
    return numpy_generator(split_seed, "dataset", purpose).permutation(n)


# --- a user's own samples -------------------------------------------------------------------------


class Named(NamedTuple):
    """The class, client or category of each row, int64 [n], as a position among sorted names."""

    numbers: Rows
    names: tuple[str, ...]

    def has(self, rows: Rows) -> bool:
        """Whether the names of some rows are known."""
        return bool((rows < len(self.numbers)).all())


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
        clients = self.clients
        trained = np.unique(clients.numbers[split.train] if clients else split.train[:0])
        self._tell_groups(split)
        if clients:
            lost = np.setdiff1d(clients.numbers[: self.train], trained)
            if told := listed([quoted(clients.names[number]) for number in lost]):
                _LOGGER.warning("clients that lose all training samples: %s", told)
        if clients and clients.has(split.test):
            unknown = np.setdiff1d(clients.numbers[split.test], trained)
            if told := listed([quoted(clients.names[number]) for number in unknown]):
                count = int(np.isin(clients.numbers[split.test], unknown).sum())
                _LOGGER.warning("%d test samples are of clients without training samples: %s",
                                count, told)  # fmt: skip
                for line in alike("clients, of test samples, too,", clients.names):
                    _LOGGER.warning("%s", line)

        def part(own: Rows) -> Images:
            kept = Images(samples(own), torch.from_numpy(self.labels.numbers[own]))
            if clients is None or not clients.has(own):
                return kept
            numbers = clients.numbers[own]
            places = np.where(np.isin(numbers, trained), np.searchsorted(trained, numbers), -1)
            return replace(kept, clients=torch.from_numpy(places))

        names = tuple(clients.names[number] for number in trained) if clients else None
        return split.dataset(part, self.labels.names, client_names=names)

    def _tell_groups(self, split: Split) -> None:
        """Say which groups are in training and test samples, and which have similar names."""
        if self.groups is None:
            return
        for line in alike("groups", self.groups.names):
            _LOGGER.warning("%s", line)
        trained = self.groups.numbers[split.train]
        others = {"test": split.test, "public": split.held_out, "server": split.server_validation}
        for part, own in others.items():
            if not self.groups.has(own):
                _LOGGER.warning("groups of %s samples are not known: no such column", part)
            elif len(both := np.intersect1d(trained, self.groups.numbers[own])):
                told = listed([quoted(self.groups.names[number]) for number in both])
                _LOGGER.warning("%d groups have training and %s samples: %s", len(both), part, told)

    def drawn(self, settings: Drawn, fraction: float | None = None) -> "Labelled":
        """Return the rows, with a share of each client's samples of each class last, for testing.

        The share is `test_fraction`, or else `fraction`, if any. With groups, it is a share of the
        groups, each by its first row; a client that would lose all rows keeps its first group.

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
        drawn = rows_for_testing(fraction, shuffled, numbers[first], owners[first])
        _, start, owner = np.unique(owners, return_index=True, return_inverse=True)
        drawn[group[start[np.bincount(owner, ~drawn[group]) == 0]]] = False
        tested = drawn[group]
        train, test = np.flatnonzero(~tested), np.flatnonzero(tested)
        if not len(test):
            fault = f"none of {len(numbers)} rows is for testing"
            raise FedstageError(f"data.test_fraction = {fraction:g}: {fault}")
        order = np.concatenate([train, test])
        labels, clients, groups = (
            own and own._replace(numbers=own.numbers[order])
            for own in (self.labels, self.clients, self.groups)
        )
        assert labels is not None, "as before"
        return Labelled(labels, clients, groups, len(train), self.order[order])


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
    _, first, owner = np.unique(clients, return_index=True, return_inverse=True)
    tested[first[np.bincount(owner, ~tested) == 0]] = False
    return tested
