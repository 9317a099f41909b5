"""The command line: ``fedstage STAGE --input ... --output ...``.

A subcommand's options follow from the signature of the function of the same name, so that a stage
is described once. A `FedstageError`, or a file that cannot be opened, ends in one line, which is
shown and logged; for any other error the log has the traceback as well.
"""

import argparse
import inspect
import os
import shlex
import signal
import sys
import time
import traceback
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TextIO

from fedstage.data.folder import default_folder
from fedstage.errors import FedstageError
from fedstage.execution.client import PYTHON, open_standard_files, process_age
from fedstage.execution.commands import COMMANDS, describe_commands, run_command
from fedstage.execution.imported import check_imports, look_at_imports
from fedstage.execution.notices import noticing
from fedstage.execution.timings import Timings
from fedstage.plan.stages import STAGES
from fedstage.settings.plugins import describe_error, line_of_plugin
from fedstage.stages import Seconds, call, find_stage, options_of
from fedstage.storage.files import making, save_text
from fedstage.storage.project_plugins import load_project_plugins
from fedstage.storage.provenance import PARTS, WRITTEN, digests_of, write_record

_PACKAGE = Path(__file__).parents[1]


def main(argv: Sequence[str] | None = None, started: float | None = None) -> int:
    """Run one command; return 0, 1 after an error, or 2 if there is none of this name.

    `argv` defaults to the arguments of this process. `started` is the start of the command on the
    clock of `time.perf_counter`, by default the start of this process.
    """
    if argv is None:
        return _at_terminal()
    command, *arguments = [*argv] or [""]
    if command in COMMANDS:
        return run_command(command, arguments)
    if command not in STAGES:
        return _usage(command)
    if started is None:
        started = time.perf_counter() - process_age()
    return run_stage(command, arguments, started)


def _at_terminal() -> int:
    """Run the command of this process's arguments; return its exit code.

    Names and texts are UTF-8, even without a locale. If output is closed, or is a pipe whose reader
    has ended, the exit code is 128 + SIGPIPE, as in other programs; after Ctrl-C it is 128 +
    SIGINT.
    """
    if sys.getfilesystemencoding() != "utf-8":
        os.execv(sys.executable, [*PYTHON, "fedstage.execution.cli", *sys.argv[1:]])
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


def run_stage(name: str, arguments: Sequence[str], started: float) -> int:
    """Run a stage; write its log, and after success its record."""
    options = vars(stage_parser(name).parse_args(arguments))
    log: Path | None = options.pop("log")
    source: str | None = options.pop("fingerprint")
    read: list[str] = options.pop("sources")
    timings = Timings(startup=time.perf_counter() - started)
    try:
        load_project_plugins()
        with making(source, read) as made, noticing(name, sys.stderr) as notices:
            check_source(name, options, source, started)
            parts = call(name, options)
            check_source(name, options, source, started)
        if log is not None:
            more = {**_raw_files(name, options), **_seconds_of(parts)}
            if others := _unnamed(made.written, options):  # a segment's files
                more[WRITTEN] = digests_of(others)
            command = shlex.join(["fedstage", name, *arguments])
            save_text(log, f"{command}\n{notices.getvalue()}{timings.finish()}\n")
            write_record(log, name, options, source, timings.figures(), more)
    except (FedstageError, OSError) as error:
        _tell(log, f"fedstage {name}: {error}\n")
        return 1
    except Exception as error:  # a bug, here or in a plugin
        if log is None:
            raise
        _tell(log, f"fedstage {name}: {_of_bug(error)}\n", traceback.format_exc())
        return 1
    return 0


def _tell(log: Path | None, message: str, details: str = "") -> None:
    """Print the message of a job that fails, and write it into its log with the details."""
    sys.stderr.write(message)
    if log is not None:
        with suppress(FedstageError):  # the disk may be full
            save_text(log, f"{message}\n{details}" if details else message)


def _of_bug(error: Exception) -> str:
    """Return the last line of a plugin, or else of this package, behind an error, and the error."""
    return f"{line_of_plugin(error) or _line_of_package(error)}{describe_error(error)}"


def _line_of_package(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if Path(frame.filename).is_relative_to(_PACKAGE)]
    if not own:
        return ""
    return f"{Path(own[-1].filename).relative_to(_PACKAGE.parent)}, line {own[-1].lineno}: "


def check_source(name: str, options: Mapping[str, Any], source: str | None, started: float) -> None:
    """Raise FedstageError if this process has imported source other than the planned one."""

    def now() -> str:
        from fedstage.plan.source import read_again
        from fedstage.storage.why import fingerprint_now

        read_again()
        recipe = {"recipe": [options["recipe"]]} if "recipe" in options else {}
        return fingerprint_now(Path(), {"stage": name, "options": options, "inputs": recipe})

    look_at_imports(time.time_ns() - int((time.perf_counter() - started) * 1e9))
    check_imports(source, now)


def _unnamed(paths: Iterable[str], options: Mapping[str, Any]) -> list[str]:
    """Return the files that no option names."""
    values = (value if isinstance(value, list) else [value] for value in options.values())
    named = {str(value) for each in values for value in each}
    return [path for path in paths if path not in named]


def _raw_files(name: str, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the part of a record about the raw files that a job has read."""
    if name != "dataset":
        return {}
    from fedstage.storage.raw_files import raw_of_job

    return raw_of_job(options["settings"], options["folder"] or default_folder())


def _seconds_of(parts: Seconds | None) -> Mapping[str, Any]:
    """Return the part of a record about several jobs that are done in one."""
    return {PARTS: {file: round(seconds, 3) for file, seconds in parts.items()}} if parts else {}


def stage_parser(name: str) -> argparse.ArgumentParser:
    """Build a parser from the options of a stage."""
    about = inspect.getdoc(find_stage(name))
    parser = argparse.ArgumentParser(prog=f"fedstage {name}", description=about)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--log", type=Path, help="where the log goes, with a record next to it")
    parser.add_argument("--fingerprint", help="of the source, for the record and what is written")
    parser.add_argument("--sources", nargs="*", default=[], help="of what may be read; default all")
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
        from fedstage.settings.command_lines import as_typed
        from fedstage.settings.suggestions import suggest

        hint = suggest(command, [*STAGES, *COMMANDS]) or ";"
        print(
            f"fedstage: {command!r}: no such command or stage{hint} "
            f"{as_typed('fedstage', '--help')} lists all",
            file=sys.stderr,
        )
        return 2
    print("usage: fedstage COMMAND [options]   (fedstage COMMAND --help)\n\ncommands:")
    rows = [f"  {name:24}{stage.about}" for name, stage in STAGES.items()]
    print(*describe_commands(), "\nstages, which the workflow's rules call:", *rows, sep="\n")
    return 0 if command in ("--help", "-h") else 2


if __name__ == "__main__":
    sys.exit(main())
