"""``fedstage missing``: which files of finished work are gone.

Snakemake looks at the outputs of a job only if another job that has to run reads them. So a deleted
model between existing files is not made again, because nothing needs it, until it is named.
"""

import csv
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import dropwhile, pairwise
from pathlib import Path

from fedstage.errors import FedstageError
from fedstage.plan.results import RESULTS
from fedstage.settings.command_lines import as_typed

#: Snakemake's words for a missing file that was not temporary and whose job need not run.
_GONE = {"status": "missing", "plan": "no update"}

#: The beginning of the last line of a fault.
_OWN = "fedstage: "

#: A row of snakemake's summary, by its columns.
Row = dict[str, str]


def list_missing(arguments: Sequence[str]) -> str:
    """Return the missing files, a line each; print on standard error how to make them again."""
    files = missing(arguments)
    print(describe(files, arguments), file=sys.stderr)
    return "\n".join(files)


def missing(arguments: Sequence[str]) -> list[str]:
    """Return the files that finished jobs have made, that should have stayed, and that are gone.

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
    return rows + [row for half in _halves(described) for row in _sound_rows(half, options)]


def _sound_rows(targets: Sequence[str], options: Sequence[str]) -> Iterator[Row]:
    """Yield the rows of the targets that can be planned, found by halves; name the others."""
    done = _planned([*targets, *options])
    if not done.returncode:
        yield from _rows(done)
    elif len(targets) == 1:
        text = f"{targets[0]}: cannot be planned, its files are left out: {_reason(done)}"
        print(text, file=sys.stderr)
    else:
        for half in _halves(targets):
            yield from _sound_rows(half, options)


def _halves(targets: Sequence[str]) -> list[Sequence[str]]:
    """Return the first and the second half, or the only target."""
    middle = (len(targets) + 1) // 2
    return [half for half in (targets[:middle], targets[middle:]) if half]


def _reason(done: subprocess.CompletedProcess[str]) -> str:
    """Return the reason why snakemake could not plan: the last line of this package, if any."""
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    own = [line.removeprefix(_OWN) for line in lines if line.startswith(_OWN)]
    return [*lines, *own][-1].strip() if lines else f"exit status {done.returncode}"


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
    """Return the folder of `results`: the one of the option --directory, or the current one."""
    for option, value in pairwise(arguments):
        if option in ("--directory", "-d"):
            return Path(value)
    return Path()


def gone(rows: Iterable[Row]) -> list[str]:
    """Return the files that are gone, in the order of a summary."""
    files = (row["output_file"] for row in rows if _GONE.items() <= row.items())
    return list(dict.fromkeys(files))


def finished(rows: Iterable[Row]) -> set[str]:
    """Return the files, existing or gone, that the next run does not make again."""
    return {row["output_file"] for row in rows if row["plan"] == _GONE["plan"]}


def describe(files: Sequence[str], arguments: Sequence[str]) -> str:
    """Return what to do about missing files.

    Without files, `snakemake $(fedstage missing)` would make all targets; `xargs -r` makes none.
    """
    if not files:
        return "no file of a finished job is missing"
    count = "1 file is" if len(files) == 1 else f"{len(files)} files are"
    command = as_typed("fedstage", "missing", *arguments)
    made = as_typed("snakemake", "--cores", "all")
    return f"{count} gone; to make them again: {command} | xargs -r -d '\\n' {made}"
