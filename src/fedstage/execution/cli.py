"""The command line: ``fedstage run STAGE FILE NAME=VALUE ...``, and commands about results.

The imports of a command are made only when it runs.
"""

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from fedstage.errors import FedstageError
from fedstage.execution.jobs import run
from fedstage.execution.pool import open_standard_files
from fedstage.execution.project import workflow_folder
from fedstage.storage.yaml_files import load_project_plugins


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command, by default of the arguments of this process; return its exit code."""
    if argv is None:
        return _at_terminal()
    match list(argv):
        case ["run", stage, file, *words] if not stage.startswith("-"):
            return run(stage, file, *words)
    return run_command(argv)


def _at_terminal() -> int:
    """Run the command of this process's arguments; return its exit code.

    If output is closed, or is a pipe whose reader has ended, the exit code is 128 + SIGPIPE, as in
    other programs; after Ctrl-C it is 128 + SIGINT.
    """
    open_standard_files()
    sys.stdout = _ready(sys.stdout)
    sys.stderr = _ready(sys.stderr)
    try:
        code = main(sys.argv[1:])
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except BrokenPipeError:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)  # else the end of the process would flush again
        return 128 + signal.SIGPIPE
    return code


def _ready(stream: TextIO | None) -> TextIO:
    """Return a stream that can be written to, and that accepts any character."""
    if stream is None:
        return open(os.devnull, "w", encoding="utf-8")
    if isinstance(stream, TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
    return stream


# --- commands about results -----------------------------------------------------------------------

#: The name of an option, and its arguments for argparse.
Option = tuple[str, dict[str, Any]]


class Command(NamedTuple):
    """A command: its description, the function of its options that returns its answer, and these.

    The function is named, and imported when the command runs.
    """

    about: str
    answer: str
    options: Sequence[Option] = ()


def run_command(argv: Sequence[str]) -> int:
    """Print the answer of a command, if there is anything to print, or its error instead."""
    parser = argparse.ArgumentParser("fedstage")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, command in COMMANDS.items():
        own = commands.add_parser(name, help=command.about, description=f"{command.about}.")
        for option, about in command.options:
            own.add_argument(option, **about)
    given = vars(parser.parse_args(argv))
    name = given.pop("command")
    module, _, function = COMMANDS[name].answer.rpartition(".")
    try:
        load_project_plugins(given.get("config", Path("config.yaml")))
        if "workflow" in given:
            given["workflow"] = given["workflow"] or workflow_folder()
        if text := getattr(import_module(module), function)(**given):
            print(text)
    except BrokenPipeError:
        raise
    except (FedstageError, OSError) as error:
        for line in str(error).splitlines():
            print(f"fedstage {name}: {line}", file=sys.stderr)
        return 1
    return 0


def compare(
    target: str, rows: Sequence[str], baseline: str | None, metric: str | None, to: Path | None
) -> str:
    """Compare the rows of a target's table, in text or in a file."""
    from fedstage.results.differences import compare, compare_table
    from fedstage.results.documents import grid, write_tables

    table = compare_table(compare(target, rows, baseline=baseline, metric=metric), target)
    if to is None:
        return f"{grid(table)}\n\n{table.above[0]}"
    write_tables(to, [table])
    return str(to)


def schemas(into: Path, config: Path) -> str:
    """Write the schemas of all settings into a folder."""
    from fedstage.settings.config_file import write_schemas

    return "\n".join(map(str, write_schemas(into)))


def _option(name: str, **about: Any) -> Option:
    return name, about


_TARGET = _option("target", metavar="TARGET", help="such as quickstart or fedsdd_table2/mini")
_CONFIG = _option("--config", type=Path, default=Path("config.yaml"))
_WORKFLOW = _option("--workflow", type=Path, help="its folder, by default this package's")


def _several(name: str, metavar: str, about: str) -> Option:
    return _option(name, nargs="+", default=[], metavar=metavar, help=about)


COMMANDS = {
    "init": Command(
        "make a project: a folder with the quickstart, profiles, and a method and an experiment of "
        "your own",
        "fedstage.execution.project.init",
        [_option("folder", metavar="FOLDER", type=Path, help="which is made, unless it is there")],
    ),
    "run": Command(
        "run one job: snakemake -n -p shows the command of each",
        "fedstage.execution.jobs.run",
        [
            _option("stage", metavar="STAGE", help="its stage; `fedstage list stages` has all"),
            _option("file", metavar="RECIPE", help="the recipe.yaml of a folder below results"),
            _option("words", nargs="*", metavar="NAME=VALUE", help="its place, such as round=3"),
        ],
    ),
    "why": Command(
        "explain a file: from which settings, inputs and source it was made, even if it is gone",
        "fedstage.storage.why.why",
        [_option("file", metavar="FILE", type=Path, help="a file below results")],
    ),
    "check": Command(
        "check config.yaml and every experiment; a run checks only the experiments that it makes",
        "fedstage.experiments.catalogue.check",
        [_CONFIG, _WORKFLOW],
    ),
    "check-data": Command(
        "check a folder of your own data, or the data of an experiment, before a run",
        "fedstage.execution.data_check.check_data",
        [
            _option("named", metavar="FOLDER", help="also in the data folder, or an experiment"),
            _option("--settings", default="{}", help="of data, such as {label: outcome}"),
            *(_CONFIG, _WORKFLOW),
        ],
    ),
    "clean": Command(
        "list or delete results that no experiment needs, or that targets to keep do not need",
        "fedstage.execution.clean.clean",
        [
            _several("--keep", "TARGET", "targets to keep, by default all"),
            _option("--delete", action="store_true", help="delete the results and their logs"),
            *(_CONFIG, _WORKFLOW),
        ],
    ),
    "verify": Command(
        "check every file that a job has recorded: content, path, inputs and source",
        "fedstage.storage.why.verify",
    ),
    "list": Command(
        "list methods, models, data, experiments and more, or the runs of a target",
        "fedstage.experiments.listing.listed",
        [
            _option("kind", metavar="KIND", help="methods, models, data, stages, runs, ..."),
            _option("target", nargs="?", help="with runs: by default all in config.yaml"),
            *(_CONFIG, _WORKFLOW),
        ],
    ),
    "schemas": Command(
        "write the schemas of config.yaml, experiments and claims for editors, including the "
        "settings of your plugins",
        "fedstage.execution.cli.schemas",
        [
            _option("--into", type=Path, default=Path("workflow/schemas"), metavar="FOLDER"),
            _CONFIG,
        ],
    ),
    "compare": Command(
        "compare the rows of a target's table by paired t-tests over seeds, with p-values "
        "corrected for all comparisons shown (Holm)",
        "fedstage.execution.cli.compare",
        [
            _TARGET,
            _several("--rows", "ROW", "by default all"),
            _option("--baseline", metavar="ROW", help="compare the others with this one only"),
            _option("--metric", help="a column of the metrics, by default the table's"),
            _option("--to", type=Path, metavar="FILE", help="write a file: .tex or .csv"),
        ],
    ),
    "best": Command(
        "print the best values of a finished sweep on validation samples, as settings of cells to "
        "paste into an experiment",
        "fedstage.results.differences.best",
        [
            _TARGET,
            _several("--over", "AXIS", "by default all axes of numbers that are settings"),
        ],
    ),
    "export": Command(
        "write the runs of a target for an experiment tracker: scalars over rounds, settings as "
        "parameters, and tables; needs the extra of the same name",
        "fedstage.execution.export.export",
        [
            _TARGET,
            _option("--to", choices=("tensorboard", "mlflow"), required=True),
            _option("into", metavar="FOLDER", type=Path, help="where to write"),
        ],
    ),
}


if __name__ == "__main__":
    sys.exit(main())
