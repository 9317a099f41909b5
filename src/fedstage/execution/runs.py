"""The runs of snakemake in a folder: each notes its process next to its log."""

import os
import re
import socket
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

from fedstage.execution.client import process_status
from fedstage.settings.command_lines import as_typed

#: Snakemake's message that a folder is locked, which does not name the owner.
LOCKED = re.compile(r"Directory cannot be locked.*directory:\n([^\n]+)\n", re.DOTALL)

_LOGS, _LOCKS = ".snakemake/log", ".snakemake/locks"
_NOTE = ".process"


class Process(NamedTuple):
    """A process of a machine; its start distinguishes it from a later one of the same number."""

    machine: str
    number: int
    start: int
    namespace: str = ""  #: of its number, where it is known: a container has its own
    locks: tuple[str, ...] = ()  #: the names of the locks that end with it

    @property
    def is_here(self) -> bool:
        """Whether it is of this machine, so that its end can be seen."""
        return self.machine == socket.gethostname() and self.namespace in ("", _namespace())

    @property
    def shown(self) -> str:
        """The process for messages, with its machine if that is another one."""
        return f"process {self.number}" + ("" if self.is_here else f" of {self.machine}")

    def has_ended(self) -> bool:
        """Whether it is known to have ended."""
        return self.is_here and _start_of(self.number) != self.start


def note_run(log: Path, locks: Iterable[Path] = ()) -> Path:
    """Note that this process writes a log; return the note, which is to be deleted at the end.

    `locks` of this process are noted with it if they protect nothing once it has ended: jobs on
    other machines go on without it.

    Notes of killed runs are deleted, since snakemake has given the lock to this one.
    """
    for path, process in noted(log.parents[2]).items():
        if process.has_ended():
            _note_of(path).unlink(missing_ok=True)
    number = os.getpid()
    note = _note_of(log)
    words = [socket.gethostname(), number, _start_of(number), _namespace()]
    note.write_text(" ".join(map(str, [*words, *(path.name for path in locks)])) + "\n")
    return note


def release(folder: Path) -> str | None:
    """Remove locks of a working folder that protect nothing; return a line on them, if any.

    These are the locks of this user's runs that were killed on this machine. A younger lock of the
    same name was taken after the folder had been unlocked.
    """
    killed: dict[Path, Process] = {}
    for log, process in noted(folder).items():
        noted_at = _note_of(log).stat()
        if process.has_ended() and noted_at.st_uid == os.getuid():
            paths = (folder / _LOCKS / name for name in process.locks)
            old = (p for p in paths if p.exists() and p.stat().st_mtime_ns <= noted_at.st_mtime_ns)
            killed |= dict.fromkeys(old, process)
    for path in killed:
        path.unlink(missing_ok=True)
    shown = ", ".join(dict.fromkeys(process.shown for process in killed.values()))
    line = f"a run that was killed had locked this folder ({shown}); its lock is removed"
    return line if killed else None


def noted(folder: Path) -> dict[Path, Process]:
    """Return the processes of runs in a working folder that work or were killed, by their logs."""
    return dict(_noted(folder))


def is_locked(folder: Path) -> bool:
    """Whether a run works in a working folder, or was killed there."""
    return any((folder / _LOCKS).glob("*"))


def explain_lock(folder: Path) -> str:
    """Return a message about which process has locked a working folder, or how to unlock it."""
    processes = noted(folder).values()
    unlock = as_typed("snakemake", "--unlock")
    if working := [process for process in processes if not process.has_ended()]:
        doubt = "" if working[0].is_here else f"; if it was killed, unlock it: {unlock}"
        return f"another run ({working[0].shown}) works in this folder{doubt}"
    if processes:
        killed = ", ".join(process.shown for process in processes)
        return f"this folder is locked by a run that was killed ({killed}); unlock it: {unlock}"
    return f"another run works in this folder, or was killed; if it was, unlock it: {unlock}"


def _noted(folder: Path) -> Iterator[tuple[Path, Process]]:
    for note in sorted((folder / _LOGS).glob(f"*{_NOTE}")):
        with suppress(OSError, ValueError):  # deleted, or being written, at this moment
            machine, number, start, *rest = note.read_text().split()
            process = Process(machine, int(number), int(start), "".join(rest[:1]), tuple(rest[1:]))
            yield note.with_suffix(""), process


def _note_of(log: Path) -> Path:
    return log.with_name(log.name + _NOTE)


@cache
def _namespace() -> str:
    """Return the namespace of this process's number; two containers may have the same numbers."""
    return os.readlink("/proc/self/ns/pid")


def _start_of(number: int) -> int | None:
    """Return when a process was started, in ticks of this machine; None if there is none."""
    try:
        status = process_status(str(number))
    except OSError:
        return None
    return None if status[0] in "ZX" else int(status[19])  # field 22 of proc(5)
