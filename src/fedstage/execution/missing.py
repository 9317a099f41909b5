"""``fedstage missing``: which files of finished work are gone.

Snakemake looks at the outputs of a job only if another job that has to run reads them. So a deleted
model between the files that are there is not made anew, as nothing needs it, until it is named.
"""

import csv
import shlex
import subprocess
import sys
from collections.abc import Iterable, Sequence
from itertools import dropwhile

from fedstage.errors import FedstageError

#: Snakemake's words: the file does not exist, nor was it temporary; nothing makes its job run.
_GONE = {"status": "missing", "plan": "no update"}

#: A row of snakemake's summary, by its columns.
Row = dict[str, str]


def list_missing(arguments: Sequence[str]) -> str:
    """Return the missing files, a line each; say on standard error what makes them again."""
    files = missing(arguments)
    print(describe(files, arguments), file=sys.stderr)
    return "\n".join(files)


def missing(arguments: Sequence[str]) -> list[str]:
    """Return the files that jobs of these targets have made, that were to stay, and that are gone.

    Parameters
    ----------
    arguments : sequence of str
        Targets and options of snakemake; without targets those of config.yaml.

    Raises
    ------
    FedstageError
        If snakemake cannot plan the targets.
    """
    return gone(summary(arguments))


def summary(arguments: Sequence[str]) -> list[Row]:
    """Return snakemake's summary of the files of these targets, a row a file.

    Raises
    ------
    FedstageError
        If snakemake cannot plan the targets.
    """
    command = [sys.executable, "-m", "snakemake", "--dry-run", "--summary", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.stderr.write(done.stdout + done.stderr)
        raise FedstageError("snakemake cannot plan the targets, see above")
    return rows_of(done.stdout)


def rows_of(printed: str) -> list[Row]:
    """Return the rows of a summary as snakemake prints it."""
    table = dropwhile(lambda line: not line.startswith("output_file\t"), printed.splitlines())
    return list(csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE))


def gone(rows: Iterable[Row]) -> list[str]:
    """Return the files that are gone, in the order of a summary."""
    return [row["output_file"] for row in rows if _GONE.items() <= row.items()]


def finished(rows: Iterable[Row]) -> set[str]:
    """Return the files that the next run does not make anew, be they there or not."""
    return {row["output_file"] for row in rows if row["plan"] == _GONE["plan"]}


def describe(files: Sequence[str], arguments: Sequence[str]) -> str:
    """Return what to do about missing files.

    With no file `snakemake $(fedstage missing)` would make all targets; `xargs -r` makes nothing.
    """
    if not files:
        return "no file of a finished job is missing"
    count = "1 file is" if len(files) == 1 else f"{len(files)} files are"
    command = shlex.join(["fedstage", "missing", *arguments])
    made = "xargs -r -d '\\n' snakemake --cores all"
    return f"{count} gone; to make them again: {command} | {made}"
