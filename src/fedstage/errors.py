"""The exception that a user is meant to read."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")
Made = TypeVar("Made")

_MOST = 20  # faults that are told at once


class FedstageError(Exception):
    """A fault of the user's configuration or data, told in one line.

    The message names the key or file, the value found there, and what is allowed.
    Anything else that is raised is a bug, whose traceback is kept, in the log of the job.
    """


def how_to_install(extra: str) -> str:
    """Write how an extra of this package is installed: in a clone, or elsewhere."""
    return f"install the extra {extra}: uv sync --extra {extra}, or pip install 'fedstage[{extra}]'"


@contextmanager
def fault_of(what: str) -> Iterator[None]:
    """Begin the message of a fault with what it is a fault of."""
    try:
        yield
    except FedstageError as error:
        raise FedstageError(f"{what}: {error}") from None


def each(
    make: Callable[[T], Made], items: Iterable[T], mapped: Callable[..., Iterable[Any]] = map
) -> list[Made]:
    """Return what is made of each item; the faults of all items are told at once, a line each."""

    def tried(item: T) -> tuple[list[Made], str]:
        try:
            return [make(item)], ""
        except FedstageError as error:
            return [], str(error)

    found = list(mapped(tried, items))
    faults = list(dict.fromkeys(fault for _, fault in found if fault))
    if faults:
        more = [f"and {len(faults) - _MOST} more faults"] if len(faults) > _MOST else []
        raise FedstageError("\n".join([*faults[:_MOST], *more]))
    return [made for kept, _ in found for made in kept]


def both(one: Callable[[], T], other: Callable[[], Made]) -> tuple[T, Made]:
    """Return what two functions return; the faults of both are told at once."""
    makes: list[Callable[[], Any]] = [one, other]
    made = each(lambda make: make(), makes)
    return made[0], made[1]


class UncountedClients(FedstageError):
    """How many clients an experiment has is only in data that cannot be read."""
