"""``fedstage missing``: which files of finished work are gone.

Snakemake looks at the outputs of a job only if another job that has to run reads them. So a deleted
model between the files that are there is not made again, as nothing needs it, until it is named.
"""

import csv
import subprocess
import sys
from collections.abc import Iterable, Sequence
from itertools import dropwhile, pairwise
from pathlib import Path

from fedstage.errors import FedstageError
from fedstage.plan.results import RESULTS
from fedstage.settings.command_lines import as_typed

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
    """Return the files that finished jobs have made, that were to stay, and that are gone.

    `arguments` are as in `summary`.
    """
    return gone(summary(arguments))


def summary(arguments: Sequence[str]) -> list[Row]:
    """Return snakemake's summary of the files of some targets, one row per file.

    Parameters
    ----------
    arguments : sequence of str
        Targets, and after them options of snakemake. Without targets: all targets of
        config.yaml, and all experiments that have results.

    Raises
    ------
    FedstageError
        If snakemake cannot plan the targets.
    """
    options = options_of(arguments)
    described = [] if len(options) < len(arguments) else _described(working_folder(arguments))
    if not described:
        return _rows(_planned(arguments))
    together = _planned(["all", *described, *options])
    if not together.returncode:
        return _rows(together)
    rows = _rows(_planned(arguments))  # an experiment may have been deleted or renamed
    for target in described:
        if (alone := _planned([target, *options])).returncode:
            print(f"{target}: cannot be planned, its files are left out", file=sys.stderr)
        else:
            rows += _rows(alone)
    return rows


def _described(root: Path) -> list[str]:
    """Return the targets that have results, as EXPERIMENT/SCALE."""
    folder, end = root / RESULTS / "descriptions", ".runs.json"
    paths = sorted(folder.glob(f"*/*{end}"))
    return [path.relative_to(folder).as_posix().removesuffix(end) for path in paths]


def _planned(arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "snakemake", "--dry-run", "--summary", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _rows(done: subprocess.CompletedProcess[str]) -> list[Row]:
    """Return the rows of a summary as snakemake prints it."""
    if done.returncode:
        sys.stderr.write(done.stdout + done.stderr)
        raise FedstageError("snakemake cannot plan the targets, see above")
    table = dropwhile(lambda line: not line.startswith("output_file\t"), done.stdout.splitlines())
    return list(csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE))


def options_of(arguments: Sequence[str]) -> list[str]:
    """Return the arguments from the first option on: targets stand before options."""
    return list(dropwhile(lambda argument: not argument.startswith("-"), arguments))


def working_folder(arguments: Sequence[str]) -> Path:
    """Return where `results` is: the folder of the option --directory, or this one."""
    for option, value in pairwise(arguments):
        if option in ("--directory", "-d"):
            return Path(value)
    return Path()


def gone(rows: Iterable[Row]) -> list[str]:
    """Return the files that are gone, in the order of a summary."""
    files = (row["output_file"] for row in rows if _GONE.items() <= row.items())
    return list(dict.fromkeys(files))


def finished(rows: Iterable[Row]) -> set[str]:
    """Return the files that the next run does not make again, there or gone."""
    return {row["output_file"] for row in rows if row["plan"] == _GONE["plan"]}


def describe(files: Sequence[str], arguments: Sequence[str]) -> str:
    """Return what to do about missing files.

    With no file `snakemake $(fedstage missing)` would make all targets; `xargs -r` makes nothing.
    """
    if not files:
        return "no file of a finished job is missing"
    count = "1 file is" if len(files) == 1 else f"{len(files)} files are"
    command = as_typed("fedstage", "missing", *arguments)
    made = as_typed("snakemake", "--cores", "all")
    return f"{count} gone; to make them again: {command} | xargs -r -d '\\n' {made}"
