"""Commands about what there is, what was made and what runs: list, compare, export, watch, ..."""

import argparse
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.resources import files
from pathlib import Path

from fedstage.errors import FedstageError
from fedstage.plan.stages import STAGES

#: What `fedstage list` lists; `fedstage.experiments.listing` is imported by that command only.
KINDS = ("methods", "models", "data", "partitions", "stages", "experiments", "runs")
#: What `fedstage export` writes for; `fedstage.results.export` is imported by that command only.
PROGRAMS = ("tensorboard", "mlflow")
#: Commands of `fedstage.execution.cli` that are no stages, and are not here.
OTHERS = ("why", "check", "check-data", "missing", "forget", "verify")


def list_what_there_is(arguments: Sequence[str]) -> str:
    """Return the table of ``fedstage list KIND [TARGET]``."""
    from fedstage.experiments.listing import listing, write

    parser = argparse.ArgumentParser(prog="fedstage list", description=listing.__doc__)
    parser.description = "List what there is to choose from, or what has been made of a target."
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("target", nargs="?", help="whose runs; by default those of config.yaml")
    add_places(parser)
    given = parser.parse_args(arguments)
    if given.target is not None and given.kind != "runs":
        raise FedstageError(f"{given.kind} {given.target}: only runs are those of a target")
    return write(*listing(given.kind, given.target, given.config, given.workflow))


def add_places(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where the configuration and the workflow are."""
    parser.add_argument("--config", type=Path, default=Path("config.yaml"))
    parser.add_argument("--workflow", type=Path, default=Path("workflow"), help="its folder")


def compare_rows(arguments: Sequence[str]) -> str:
    """Return the table of ``fedstage compare TARGET``."""
    parser = argparse.ArgumentParser(
        prog="fedstage compare",
        description="Say which rows of a target's table differ: by paired t-tests over seeds, "
        "with p-values that are corrected for all comparisons shown (Holm).",
    )
    parser.add_argument("target", help="such as quickstart or fedsdd_table2/mini")
    parser.add_argument("--rows", nargs="+", default=[], help="by default all", metavar="ROW")
    parser.add_argument("--metric", help="a column of the metrics, by default the table's")
    given = parser.parse_args(arguments)
    from fedstage.results.at_hand.differences import compare, write

    return write(compare(given.target, given.rows, metric=given.metric))


def export_runs(arguments: Sequence[str]) -> str:
    """Write the runs of ``fedstage export TARGET --to PROGRAM FOLDER``; return what was written."""
    parser = argparse.ArgumentParser(
        prog="fedstage export",
        description="Write the runs of a target for a program that shows experiments: scalars "
        "over rounds, settings as parameters, and tables. Needs the extra of its name.",
    )
    parser.add_argument("target", help="such as quickstart or fedsdd_table2/mini")
    parser.add_argument("--to", choices=PROGRAMS, required=True)
    parser.add_argument("folder", type=Path, help="where to write")
    given = parser.parse_args(arguments)
    from fedstage.results.export.targets import export

    return export(given.target, given.to, given.folder)


def watch_run(arguments: Sequence[str]) -> str:
    """Show ``fedstage watch`` until the run ends; return the last look."""
    from fedstage.execution.watch import watch

    about = "Show what runs in a working folder, what is left, how long it takes, and the losses."
    parser = argparse.ArgumentParser(prog="fedstage watch", description=about)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(), help="by default this one")
    parser.add_argument("--every", type=float, default=2.0, help="seconds between two looks")
    parser.add_argument("--once", action="store_true", help="look once, and end")
    given = parser.parse_args(arguments)
    with suppress(KeyboardInterrupt):
        return watch(given.folder, given.every, given.once)
    return ""


def completion(arguments: Sequence[str]) -> str:
    """Return the script of ``fedstage completion bash``."""
    parser = argparse.ArgumentParser(
        prog="fedstage completion",
        description='Print what completes the commands of fedstage: eval "$(fedstage completion '
        'bash)". In zsh, after: autoload -U +X bashcompinit && bashcompinit.',
    )
    parser.add_argument("shell", choices=["bash", "zsh"])
    parser.parse_args(arguments)
    script = files("fedstage.execution").joinpath("completion.bash").read_text(encoding="utf-8")
    commands = (*OTHERS, *COMMANDS, *STAGES)
    for name, words in (("COMMANDS", commands), ("KINDS", KINDS), ("PROGRAMS", PROGRAMS)):
        script = script.replace(name, " ".join(words))
    return script.rstrip()


#: What each command returns to be printed.
COMMANDS: dict[str, Callable[[Sequence[str]], str]] = {
    "list": list_what_there_is,
    "compare": compare_rows,
    "export": export_runs,
    "watch": watch_run,
    "completion": completion,
}
