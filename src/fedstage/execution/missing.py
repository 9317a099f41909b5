"""``fedstage missing``: which files of finished work are gone.

Snakemake looks at the outputs of a job only if another job that has to run reads them. So a deleted
model between the files that are there is not made anew, as nothing needs it, until it is named.
"""

import csv
import shlex
import subprocess
import sys
from collections.abc import Sequence
from itertools import dropwhile

from fedstage.errors import FedstageError

#: Snakemake's words: the file does not exist, nor was it temporary; nothing makes its job run.
_GONE = {"status": "missing", "plan": "no update"}


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
    command = [sys.executable, "-m", "snakemake", "--dry-run", "--summary", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.stderr.write(done.stdout + done.stderr)
        raise FedstageError("snakemake cannot plan the targets, see above")
    return gone(done.stdout)


def gone(summary: str) -> list[str]:
    """Return the files of a summary of snakemake that are gone, as it lists them."""
    table = dropwhile(lambda line: not line.startswith("output_file\t"), summary.splitlines())
    rows = csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE)
    return [row["output_file"] for row in rows if _GONE.items() <= row.items()]


def describe(files: Sequence[str], arguments: Sequence[str]) -> str:
    """Return what to do about missing files."""
    if not files:
        return "no file of a finished job is missing"
    count = "1 file is" if len(files) == 1 else f"{len(files)} files are"
    command = shlex.join(["fedstage", "missing", *arguments])
    return f"{count} gone; to make them again: snakemake --cores all $({command})"
