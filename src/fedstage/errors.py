"""The exception that a user is meant to read."""

from collections.abc import Iterator
from contextlib import contextmanager


class FedstageError(Exception):
    """A fault of the user's configuration or data, told in one line.

    The message names the key or file, the value found there, and what is allowed.
    Anything else that is raised is a bug, whose traceback is kept, in the log of the job.
    """


@contextmanager
def fault_of(what: str) -> Iterator[None]:
    """Begin the message of a fault with what it is a fault of."""
    try:
        yield
    except FedstageError as error:
        raise FedstageError(f"{what}: {error}") from None


class UncountedClients(FedstageError):
    """How many clients an experiment has is only in data that cannot be read."""
