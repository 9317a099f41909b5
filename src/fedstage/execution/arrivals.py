"""Requests that arrive at a pool, read as their bytes come, so that no client holds up others."""

import array
import os
import socket
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from fedstage.execution.client import LENGTH
from fedstage.execution.worker import Request, parse_request

FILES = 2  # standard output and error, which a client passes with its request
LONGEST = 2**24  # bytes of a request: more than a command line may have
_BLOCK = 2**16


@dataclass
class Arrival:
    """A client whose request is still incomplete."""

    client: socket.socket
    since: float = field(default_factory=time.monotonic)
    data: bytearray = field(default_factory=bytearray)
    files: list[int] = field(default_factory=list)

    @property
    def payload(self) -> bytes:
        """The block, without its length."""
        return bytes(self.data[LENGTH:])


def read_request(arrival: Arrival) -> Request | None:
    """Read the bytes that have arrived; return the request once it is complete.

    Raises
    ------
    ValueError
        If the request is malformed or too long, or has more or fewer files, or the client has gone.
    OSError
        If the connection is broken.
    """
    data, ancillary, flags, _ = arrival.client.recvmsg(
        min(_BLOCK, _missing(arrival)), socket.CMSG_SPACE(FILES * array.array("i").itemsize)
    )
    arrival.files += [file for message in ancillary for file in _passed(*message)]
    arrival.data += data
    if not data or len(arrival.files) > FILES or flags & socket.MSG_CTRUNC:
        raise ValueError("the client has gone, or passes more files than a request has")
    if _missing(arrival):
        return None
    if len(arrival.files) != FILES:
        raise ValueError("a request without its files")
    return parse_request(arrival.payload)


def _missing(arrival: Arrival) -> int:
    """Return how many bytes are known to be missing, at first the bytes of the length."""
    if len(arrival.data) < LENGTH:
        return LENGTH - len(arrival.data)
    length = int.from_bytes(arrival.data[:LENGTH], "little")
    if not 0 < length <= LONGEST:
        raise ValueError(f"a request of {length} bytes")
    return LENGTH + length - len(arrival.data)


def _passed(level: int, kind: int, data: bytes) -> list[int]:
    """Return the open files in an ancillary message."""
    files = array.array("i")
    if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
        files.frombytes(data[: len(data) - len(data) % files.itemsize])
    return files.tolist()


def drop(arrival: Arrival) -> None:
    """Close the connection of a client, and the files that it has passed."""
    arrival.client.close()
    close_files(arrival.files)


def close_files(files: Iterable[int]) -> None:
    """Close a client's standard output and error."""
    for file in files:
        with suppress(OSError):  # a file on a network disk may report here that it is full
            os.close(file)
