"""The command line: ``fedstage STAGE --input ... --output ...``.

A subcommand's options are the keyword arguments of the stage function of the same name, so that a
stage is described once. Errors of the user's making end in one line, shown and logged.
"""

import argparse
import inspect
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_type_hints

from fedstage.errors import FedstageError
from fedstage.execution.out_of_memory import explained
from fedstage.execution.timings import Timings, process_age
from fedstage.stages import STAGES
from fedstage.storage.provenance import write_record

Stage = Callable[..., None]


def main(argv: Sequence[str] | None = None, started: float | None = None) -> int:
    """Run one stage; return 0, or 1 after an error that the message explains.

    `started` is when the command was given, on the clock of `time.perf_counter`: by default the
    start of this process.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["why"]:
        return run_why(arguments[1:])
    if arguments and not arguments[0].startswith("-") and arguments[0] not in STAGES:
        print(f"fedstage: {arguments[0]!r}: no such stage", file=sys.stderr)
    if not arguments or arguments[0] not in STAGES:
        return _usage(arguments)
    if started is None:
        started = time.perf_counter() - process_age()
    return run_stage(arguments[0], arguments[1:], started)


def run_stage(name: str, arguments: Sequence[str], started: float) -> int:
    """Run stage `name`; `started` is the `perf_counter` reading at the start of its process."""
    stage = find_stage(name)
    options = vars(stage_parser(name, stage).parse_args(arguments))
    log: Path | None = options.pop("log")
    source: str | None = options.pop("fingerprint")
    if log is not None:
        log.parent.mkdir(parents=True, exist_ok=True)
    timings = Timings(startup=time.perf_counter() - started)
    try:
        with explained(name, options.get("line")):
            stage(**options)
    except FedstageError as error:
        message = f"fedstage {name}: {error}"
        print(message, file=sys.stderr)
        if log is not None:
            log.write_text(message + "\n")
        return 1
    if log is not None:
        line = timings.finish()
        log.write_text(f"fedstage {name} {' '.join(arguments)}\n{line}\n")
        write_record(log, name, options, source, timings.figures())
    return 0


def run_why(arguments: Sequence[str]) -> int:
    """Print where a file came from."""
    from fedstage.storage.why import why

    parser = argparse.ArgumentParser(prog="fedstage why", description=why.__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("file", type=Path, help="a file below results")
    try:
        print(why(parser.parse_args(arguments).file))
    except FedstageError as error:
        print(f"fedstage why: {error}", file=sys.stderr)
        return 1
    return 0


def find_stage(name: str) -> Stage:
    """Return the function of a stage, importing what it needs."""
    stage: Stage = getattr(import_module(f"fedstage.stages.{name}"), name)
    return stage


def stage_parser(name: str, stage: Stage) -> argparse.ArgumentParser:
    """Build a parser from the keyword arguments of a stage function."""
    parser = argparse.ArgumentParser(prog=f"fedstage {name}", description=inspect.getdoc(stage))
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--log", type=Path, help="where the log goes, with a record beside it")
    parser.add_argument("--fingerprint", help="of the source, for the record")
    hints = get_type_hints(stage)
    for parameter in inspect.signature(stage).parameters.values():
        option = "--" + parameter.name.replace("_", "-")
        required = parameter.default is inspect.Parameter.empty
        default = None if required else parameter.default
        parser.add_argument(
            option, required=required, default=default, **_kind(hints[parameter.name])
        )
    return parser


def _kind(hint: Any) -> dict[str, Any]:
    if isinstance(hint, UnionType):  # Path | None: may be left out, or given without a value
        kind = next(part for part in get_args(hint) if part is not type(None))
        return _kind(kind) if get_args(kind) else {"type": kind, "nargs": "?"}
    if get_args(hint):  # list[Path]
        return {"type": get_args(hint)[0], "nargs": "*"}
    return {"type": hint}


def _usage(arguments: Sequence[str]) -> int:
    stages = "\n".join(f"  {name:21}{text}" for name, text in STAGES.items())
    print(f"usage: fedstage STAGE [options]   (fedstage STAGE --help)\n\nstages:\n{stages}")
    print("\nfedstage why FILE: from which settings, files and source a result came")
    return 0 if arguments[:1] in (["--help"], ["-h"]) else 2


if __name__ == "__main__":
    sys.exit(main())
