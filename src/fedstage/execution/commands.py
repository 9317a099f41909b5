"""Commands that are not stages: about what is available, what was made, and what runs.

One file because all their options are in `COMMANDS`. The imports of a command are made only when it
runs.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from textwrap import fill
from typing import Any, NamedTuple

from fedstage.errors import FedstageError
from fedstage.execution.project import workflow_folder
from fedstage.storage.yaml_files import load_project_plugins

#: The lists of `fedstage list`.
KINDS = (
    "methods",
    "models",
    "data",
    "partitions",
    "trainers",
    "ensembles",
    "rules",
    "optimisers",
    "aggregators",
    "plugins",
    "stages",
    "experiments",
    "runs",
)
#: The programs that `fedstage export` writes for.
PROGRAMS = ("tensorboard", "mlflow")

#: The name of an option, and its arguments for argparse.
Option = tuple[str, dict[str, Any]]


class Command(NamedTuple):
    """A command: its description, its usage, its options, and the function that returns its answer.

    `answer` is a function of the options, or the name of one, which is then imported.
    """

    about: str
    usage: str
    options: Sequence[Option]
    answer: Callable[..., str] | str

    @property
    def function(self) -> Callable[..., str]:
        """The function that returns the answer."""
        if not isinstance(self.answer, str):
            return self.answer
        module, _, name = self.answer.rpartition(".")
        function: Callable[..., str] = getattr(import_module(module), name)
        return function


def run_command(name: str, arguments: Sequence[str]) -> int:
    """Print the answer of a command, if there is anything to print, or its error instead."""
    given = _parse(name, COMMANDS[name], arguments)
    try:
        load_project_plugins(given.get("config", Path("config.yaml")))
        if "workflow" in given:
            given["workflow"] = given["workflow"] or workflow_folder()
        if text := COMMANDS[name].function(**given):
            print(text)
    except BrokenPipeError:
        raise
    except (FedstageError, OSError) as error:
        for line in str(error).splitlines():
            print(f"fedstage {name}: {line}", file=sys.stderr)
        return 1
    return 0


def _parse(name: str, command: Command, arguments: Sequence[str]) -> dict[str, Any]:
    parser = argparse.ArgumentParser(prog=f"fedstage {name}", description=f"{command.about}.")
    for option, about in command.options:
        parser.add_argument(option, **about)
    return vars(parser.parse_args(arguments))


def describe_commands() -> list[str]:
    """Return the usage of each command, with its description below."""
    inside = " " * 6
    return [
        line
        for name, command in COMMANDS.items()
        for line in (
            f"  {name} {command.usage}".rstrip(),
            fill(f"{command.about}.", 90, initial_indent=inside, subsequent_indent=inside),
        )
    ]


def _list(kind: str, target: str | None, config: Path, workflow: Path) -> str:
    from fedstage.experiments.listing import listing, write

    if target is not None and kind != "runs":
        raise FedstageError(f"{kind} {target}: only runs are listed by target")
    return write(*listing(kind, target, config, workflow))


def _compare(
    target: str, rows: Sequence[str], baseline: str | None, metric: str | None, to: Path | None
) -> str:
    from fedstage.results.differences import compare, compare_table
    from fedstage.results.documents import grid, write_tables

    table = compare_table(compare(target, rows, baseline=baseline, metric=metric), target)
    if to is None:
        return f"{grid(table)}\n\n{table.above[0]}"
    write_tables(to, [table])
    return str(to)


def _schemas(into: Path, config: Path) -> str:
    from fedstage.settings.config_file import write_schemas

    return "\n".join(map(str, write_schemas(into)))


def _option(name: str, **about: Any) -> Option:
    return name, about


_PLACES = (
    _option("--config", type=Path, default=Path("config.yaml")),
    _option("--workflow", type=Path, help="its folder, by default this package's"),
)
_TARGET = _option("target", help="such as quickstart or fedsdd_table2/mini")

COMMANDS = {
    "init": Command(
        "make a project: a folder with the quickstart, profiles, and a method and an experiment of "
        "your own",
        "FOLDER",
        [_option("folder", type=Path, help="which is made, unless it is there")],
        "fedstage.execution.project.init",
    ),
    "why": Command(
        "explain a file: from which settings, inputs and source it was made, even if it is gone",
        "FILE",
        [_option("file", type=Path, help="a file below results")],
        "fedstage.storage.why.why",
    ),
    "check": Command(
        "check config.yaml and every experiment; a run checks only the experiments that it makes",
        "",
        _PLACES,
        "fedstage.experiments.catalogue.check",
    ),
    "check-data": Command(
        "check a folder of your own data, or the data of an experiment, before a run",
        "FOLDER",
        [
            _option("named", metavar="FOLDER", help="also in the data folder, or an experiment"),
            _option("--settings", default="{}", help="of data, such as {label: outcome}"),
            *_PLACES,
        ],
        "fedstage.execution.data_check.check_data",
    ),
    "clean": Command(
        "list or delete results that no experiment needs, or that targets to keep do not need",
        "[--keep TARGET ...] [--delete]",
        [
            _option(
                "--keep",
                nargs="+",
                default=[],
                metavar="TARGET",
                help="targets to keep, by default all",
            ),
            _option("--delete", action="store_true", help="delete the results and their logs"),
            *_PLACES,
        ],
        "fedstage.execution.clean.clean",
    ),
    "verify": Command(
        "check every file that a job has recorded: content, path, inputs and source",
        "",
        [],
        "fedstage.storage.verification.verify",
    ),
    "list": Command(
        "list methods, models, data, experiments and more, or the runs of a target",
        f"{'|'.join(KINDS)} [TARGET]",
        [
            _option("kind", choices=KINDS),
            _option(
                "target",
                nargs="?",
                help="with runs: the target, by default all in config.yaml",
            ),
            *_PLACES,
        ],
        _list,
    ),
    "schemas": Command(
        "write the schemas of config.yaml, experiments and claims for editors, including the "
        "settings of your plugins",
        "[--into FOLDER]",
        [
            _option("--into", type=Path, default=Path("workflow/schemas"), metavar="FOLDER"),
            _PLACES[0],
        ],
        _schemas,
    ),
    "compare": Command(
        "compare the rows of a target's table by paired t-tests over seeds, with p-values "
        "corrected for all comparisons shown (Holm)",
        "TARGET [--rows ROW ...] [--baseline ROW] [--to FILE.tex|FILE.csv]",
        [
            _TARGET,
            _option("--rows", nargs="+", default=[], metavar="ROW", help="by default all"),
            _option("--baseline", metavar="ROW", help="compare the others with this one only"),
            _option("--metric", help="a column of the metrics, by default the table's"),
            _option("--to", type=Path, metavar="FILE", help="write a file: .tex or .csv"),
        ],
        _compare,
    ),
    "best": Command(
        "print the best values of a finished sweep on validation samples, as settings of cells to "
        "paste into an experiment",
        "TARGET [--over AXIS ...]",
        [
            _TARGET,
            _option(
                "--over",
                nargs="+",
                default=[],
                metavar="AXIS",
                help="the swept axes, by default all of numbers that are settings of methods",
            ),
        ],
        "fedstage.results.differences.best",
    ),
    "export": Command(
        "write the runs of a target for an experiment tracker: scalars over rounds, settings as "
        "parameters, and tables; needs the extra of the same name",
        f"TARGET --to {'|'.join(PROGRAMS)} FOLDER",
        [
            _TARGET,
            _option("--to", choices=PROGRAMS, required=True),
            _option("into", metavar="FOLDER", type=Path, help="where to write"),
        ],
        "fedstage.execution.export.export",
    ),
}
