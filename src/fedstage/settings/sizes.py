"""How many samples each part of a data set has, from its settings and its size: without data."""

from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import NamedTuple, Protocol

from fedstage.errors import FedstageError

Shares = tuple[int, int, int]


class Parts(NamedTuple):
    """The number of samples of each part."""

    train: int
    held_out: int
    server_validation: int
    test: int


class Cut(Protocol):
    """Settings of parts that are cut from one set, in this order; the rest trains."""

    @property
    def test(self) -> int:
        """The samples for testing."""

    @property
    def held_out(self) -> int:
        """The public samples."""

    @property
    def server_validation(self) -> int:
        """The server's own."""


class Sizes(Protocol):
    """The settings of `fedstage.settings.data_sets.Sized`."""

    division: Shares | None
    train_size: int | None
    train_fraction: float | None
    test_size: int | None
    held_out: int
    server_validation: int


class _Pools(NamedTuple):
    """The number of samples that each part may have."""

    train: int
    held_out: int
    test: int
    reason: str  # of the number of samples for training, for messages


def count_parts(settings: Sizes, train: int, test: int) -> Parts:
    """Return the sizes of the parts of a set with `train` training samples and `test` others.

    Raises
    ------
    FedstageError
        If there are fewer samples than a size, or a share of the division is of none.
    """
    pools = (_official if settings.division is None else _divided)(settings, train, test)
    own, reason = settings.server_validation, pools.reason
    check_size("server_validation", own, pools.train - 1, f"{reason}, one must stay")
    remaining = pools.train - own
    if own:
        reason = f"{reason}, server_validation = {own}"
    train_size = settings.train_size or remaining
    if settings.train_fraction is not None:
        train_size = max(1, round(settings.train_fraction * remaining))
    check_size("train_size", train_size, remaining, reason)
    test_size = settings.test_size or pools.test
    check_size("test_size", test_size, pools.test, f"{pools.test} for testing")
    return Parts(train_size, pools.held_out, own, test_size)


def _official(settings: Sizes, train: int, test: int) -> _Pools:
    held_out = settings.held_out
    check_size("held_out", held_out, train - 1, f"{train} for training, one must stay")
    return _Pools(train - held_out, held_out, test, f"{train} for training, held_out = {held_out}")


def _divided(settings: Sizes, train: int, test: int) -> _Pools:
    assert settings.division is not None, "the caller looks"
    shares, n = settings.division, train + test
    ends = ends_of(shares, n)
    parts = [end - start for start, end in zip([0, *ends], ends, strict=False)]
    written = f"division = {list(shares)}"
    if any(share and not part for share, part in zip(shares, parts, strict=True)):
        raise FedstageError(f"data.{written}: each share must have a sample, and there are {n}")
    own, held_out, tested = parts
    return _Pools(own, held_out, tested, f"{ends[0]} for training, {written}")


def ends_of(shares: Shares, n: int) -> list[int]:
    """Return where the pieces of n samples end, cut at the shares and rounded down."""
    return [n * end // sum(shares) for end in accumulate(shares)]


def count_cut(settings: Cut, n: int) -> Parts:
    """Return the sizes of the parts that are cut from n samples, of which one must train.

    Raises
    ------
    FedstageError
        If nothing is left for training.
    """
    check_size("test", settings.test, n - 1, f"{n} images, one must stay for training")
    taken, left = f"test = {settings.test}", n - settings.test
    for key in ("held_out", "server_validation"):
        reason = f"{n} images, {taken}, one must stay for training"
        size = check_size(key, getattr(settings, key), left - 1, reason)
        taken, left = f"{taken}, {key} = {size}", left - size
    return Parts(left, settings.held_out, settings.server_validation, settings.test)


def check_size(key: str, value: int, available: int, reason: str) -> int:
    """Return `value`, the number of samples of setting `key`, if that many are available."""
    if value > available:
        raise FedstageError(f"data.{key} = {value}: at most {available} (there are {reason})")
    return value


def faults_of(count: Callable[[], Parts | None]) -> Iterator[str]:
    """Yield why parts cannot be counted, as a fault of the data's own settings."""
    try:
        count()
    except FedstageError as error:
        yield str(error).removeprefix("data.")
