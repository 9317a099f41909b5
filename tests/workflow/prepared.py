"""Calls of snakemake in forks of a process that has imported it, as importing takes the longest.

A fork that PYTHONPATH gives another fedstage forgets what is imported of this one; each ends as any
process does. Run as a script, it reads calls from standard input, one line of JSON each, and writes
the exit status of each.
"""

import json
import os
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path

TIMEOUT = 1800  # seconds: only what hangs takes as long


def call(arguments, output, environment):
    """Call snakemake with its output in a file; return its exit status."""
    process = _process()
    described = {"arguments": arguments, "output": str(output), "environment": environment}
    print(json.dumps(described | {"folder": os.getcwd()}), file=process.stdin, flush=True)
    return int(process.stdout.readline())


@cache
def _process():
    """Start the process of this one's calls, which ends with it."""
    return subprocess.Popen(
        [sys.executable, __file__],
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def main():
    import pandas  # noqa: F401
    import pydantic  # noqa: F401
    import snakemake.cli
    import yaml  # noqa: F401

    import fedstage.execution.executor
    import fedstage.experiments.targets  # noqa: F401

    sys.path.remove(str(Path(__file__).parent))  # of the script, where other calls have this folder
    for line in sys.stdin:
        described = json.loads(line)
        child = os.fork()
        if not child:
            begin(**described)
            sys.exit(snakemake.cli.main(sys.argv[1:]))
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def begin(arguments, output, environment, folder):
    """Make this process one that a shell has started, with what a call describes."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    written = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for file, stream in (os.open(os.devnull, os.O_RDONLY), 0), (written, 1), (written, 2):
        os.dup2(file, stream)
    sys.argv = ["snakemake", *arguments]
    sys.path[:0] = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
    if "PYTHONPATH" in environment:
        forget()
    signal.alarm(TIMEOUT)


def forget():
    """Forget what is imported of fedstage, one of whose modules is a plugin of snakemake."""
    from snakemake_interface_executor_plugins.registry import ExecutorPluginRegistry

    for module in [name for name in sys.modules if "fedstage" in name.partition(".")[0]]:
        del sys.modules[module]
    ExecutorPluginRegistry().collect_plugins()


if __name__ == "__main__":
    main()
