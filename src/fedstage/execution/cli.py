"""The command line: ``fedstage STAGE --input ... --output ...``.

A subcommand's options follow from the signature of the function of the same name, so that a stage
is described once. A `FedstageError`, or a file that cannot be opened, ends in one line, shown and
logged.
"""

import argparse
import inspect
import shlex
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from fedstage.data.folder import default_folder
from fedstage.errors import FedstageError
from fedstage.execution import at_hand
from fedstage.execution.client import process_age
from fedstage.execution.notices import noticing
from fedstage.execution.out_of_memory import explain_out_of_memory
from fedstage.execution.terminal import at_terminal
from fedstage.execution.timings import Timings
from fedstage.plan.stages import STAGES
from fedstage.stages import Seconds, call, find_stage, options_of
from fedstage.storage.files import save_text
from fedstage.storage.provenance import PARTS, write_record


def main(argv: Sequence[str] | None = None, started: float | None = None) -> int:
    """Run one command; return 0, 1 after an error, or 2 if there is no such stage.

    `argv` are by default the arguments of this process. `started` is the start of the command on
    the clock of `time.perf_counter`, by default that of this process.
    """
    if argv is None:
        return at_terminal(main)
    command, *arguments = [*argv] or [""]
    if command in COMMANDS:
        return COMMANDS[command](arguments)
    if command not in STAGES:
        return _usage(command)
    if started is None:
        started = time.perf_counter() - process_age()
    return run_stage(command, arguments, started)


def run_stage(name: str, arguments: Sequence[str], started: float) -> int:
    """Run a stage; write its log, and after success its record."""
    options = vars(stage_parser(name).parse_args(arguments))
    log: Path | None = options.pop("log")
    source: str | None = options.pop("fingerprint")
    timings = Timings(startup=time.perf_counter() - started)
    try:
        with (
            noticing(name, sys.stderr) as notices,
            explain_out_of_memory(name, options.get("recipe"), options.get("participants")),
        ):
            parts = call(name, options)
        if log is not None:
            command = shlex.join(["fedstage", name, *arguments])
            save_text(log, f"{command}\n{notices.getvalue()}{timings.finish()}\n")
            more = {**_raw_files(name, options), **_seconds_of(parts)}
            write_record(log, name, options, source, timings.figures(), more)
    except (FedstageError, OSError) as error:
        message = f"fedstage {name}: {error}\n"
        sys.stderr.write(message)
        if log is not None:
            with suppress(FedstageError):  # the disk may be full
                save_text(log, message)
        return 1
    return 0


def _raw_files(name: str, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a record says of the raw files that a job has read."""
    if name != "dataset":
        return {}
    from fedstage.storage.raw_contents import raw_of_job

    return raw_of_job(options["settings"], options["folder"] or default_folder())


def _seconds_of(parts: Seconds | None) -> Mapping[str, Any]:
    """Return what a record says of jobs that are done in one."""
    return {PARTS: {file: round(one, 3) for file, one in parts.items()}} if parts else {}


def run_why(arguments: Sequence[str]) -> int:
    """Print where a file came from."""
    from fedstage.storage.why import why

    parser = argparse.ArgumentParser(prog="fedstage why", description=why.__doc__)
    parser.add_argument("file", type=Path, help="a file below results")
    return _print("why", lambda: why(parser.parse_args(arguments).file, default_folder()))


def run_check(arguments: Sequence[str]) -> int:
    """Print whether the configuration and all experiments are valid."""
    from fedstage.experiments.checking import check

    about = "Check config.yaml and every experiment, of which a run reads those that it makes."
    parser = argparse.ArgumentParser(prog="fedstage check", description=about)
    at_hand.add_places(parser)
    options = parser.parse_args(arguments)
    return _print("check", lambda: check(options.config, options.workflow))


def run_check_data(arguments: Sequence[str]) -> int:
    """Print what is in a folder of data, or what is wrong with it."""
    from fedstage.execution.data_check import check_data

    about = "Check a folder of your own data, or the data of an experiment, before any job."
    parser = argparse.ArgumentParser(prog="fedstage check-data", description=about)
    parser.add_argument("data", metavar="FOLDER", help="or the name of an experiment")
    parser.add_argument("--settings", default="{}", help="of data, such as {label: outcome}")
    at_hand.add_places(parser)
    options = parser.parse_args(arguments)
    named = (options.data, options.settings, options.config, options.workflow)
    return _print("check-data", lambda: check_data(*named))


def run_missing(arguments: Sequence[str]) -> int:
    """Print the files that are gone."""
    from fedstage.execution.missing import list_missing

    about = "List the files of finished jobs that are gone. No run needs them: name them."
    usage = "fedstage missing [TARGET ...] [options of snakemake]"
    parser = argparse.ArgumentParser(usage=usage, description=about, allow_abbrev=False)
    given = parser.parse_known_args(arguments)[1]
    return _print("missing", lambda: list_missing(given))


def run_forget(arguments: Sequence[str]) -> int:
    """Print or delete the files that still contain forgotten clients."""
    from fedstage.execution.forget import forget

    about = "List what still contains the clients that an experiment's aggregators have forgotten."
    parser = argparse.ArgumentParser(prog="fedstage forget", description=about)
    parser.add_argument("target", help="an experiment, or EXPERIMENT/SCALE")
    parser.add_argument("--delete", action="store_true", help="delete them, and prove it")
    at_hand.add_places(parser)
    given = parser.parse_args(arguments)
    return _print(
        "forget", lambda: forget(given.target, given.config, given.workflow, given.delete)
    )


def run_verify(arguments: Sequence[str]) -> int:
    """Print whether all files of finished jobs are what they say."""
    from fedstage.execution.verify import list_faults

    about = "Read every file of finished jobs: its digest, which file it is, what it was made from."
    usage = "fedstage verify [TARGET ...] [options of snakemake]"
    parser = argparse.ArgumentParser(usage=usage, description=about, allow_abbrev=False)
    given = parser.parse_known_args(arguments)[1]
    return _print("verify", lambda: list_faults(given))


def _answer_of(command: str, arguments: Sequence[str]) -> int:
    """Print what a command of `fedstage.execution.at_hand` returns."""
    return _print(command, lambda: at_hand.COMMANDS[command](arguments))


#: Commands that are no stages.
COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {
    "why": run_why,
    "check": run_check,
    "check-data": run_check_data,
    "missing": run_missing,
    "forget": run_forget,
    "verify": run_verify,
    **{name: partial(_answer_of, name) for name in at_hand.COMMANDS},
}


def _print(command: str, answer: Callable[[], str]) -> int:
    """Print an answer, if there is anything to say, or the error instead."""
    try:
        if text := answer():
            print(text)
    except BrokenPipeError:
        raise
    except (FedstageError, OSError) as error:
        print(f"fedstage {command}: {error}", file=sys.stderr)
        return 1
    return 0


def stage_parser(name: str) -> argparse.ArgumentParser:
    """Build a parser from the options of a stage."""
    about = inspect.getdoc(find_stage(name))
    parser = argparse.ArgumentParser(prog=f"fedstage {name}", description=about)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--log", type=Path, help="where the log goes, with a record beside it")
    parser.add_argument("--fingerprint", help="of the source, for the record")
    for option in options_of(name):
        count = "*" if option.several else None if option.required else "?"
        parser.add_argument(
            "--" + option.name.replace("_", "-"),
            type=option.kind,
            required=option.required and not option.several,
            nargs=count,
        )
    return parser


def _usage(command: str) -> int:
    if command and not command.startswith("-"):
        from fedstage.settings.suggestions import suggest

        hint = suggest(command, [*STAGES, *COMMANDS])
        print(f"fedstage: {command!r}: no such stage{hint}", file=sys.stderr)
    stages = "\n".join(f"  {name:24}{stage.about}" for name, stage in STAGES.items())
    print(f"usage: fedstage STAGE [options]   (fedstage STAGE --help)\n\nstages:\n{stages}")
    print("\nfedstage why FILE: from which settings, files and source a result came")
    print("fedstage check: whether config.yaml and all experiments are valid")
    print("fedstage check-data FOLDER: whether a folder is a data set, and what is in it")
    print("fedstage missing [TARGET]: which files of finished jobs are gone")
    print("fedstage forget TARGET [--delete]: what still contains forgotten clients")
    print("fedstage verify [TARGET]: whether files of finished jobs are what they say")
    print(f"fedstage list {'|'.join(at_hand.KINDS)} [TARGET]: what there is")
    print("fedstage compare TARGET [--rows ROW ...]: which rows of a table differ")
    print(f"fedstage export TARGET --to {'|'.join(at_hand.PROGRAMS)} FOLDER: runs for others")
    print("fedstage watch [FOLDER]: what runs, what is left, and how training goes")
    print("fedstage completion bash: what completes these commands in a shell")
    return 0 if command in ("--help", "-h") else 2


if __name__ == "__main__":
    sys.exit(main())
