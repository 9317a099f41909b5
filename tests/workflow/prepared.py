"""Calls of snakemake in forks of a process that has imported it, as importing takes the longest.

What a fork server imports is there, too: each call forks the process that becomes its fork server.
A call that PYTHONPATH gives another fedstage forgets what is imported of this one. Each ends as any
process does. Run as a script, it reads calls from standard input, one line of JSON each, and writes
the exit status of each.
"""

import json
import os
import signal
import socket
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import SimpleNamespace

TIMEOUT = 1800  # seconds: only what hangs takes as long


def call(arguments, output, environment):
    """Call snakemake with its output in a file; return its exit status."""
    process = _process()
    described = {"arguments": arguments, "output": str(output), "environment": environment}
    os.umask(umask := os.umask(0))  # there is no other way to ask
    described |= {"folder": os.getcwd(), "umask": umask}
    print(json.dumps(described), file=process.stdin, flush=True)
    return int(process.stdout.readline())


@cache
def _process():
    """Start the process of this one's calls, which ends with it."""
    own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.Popen(
        [sys.executable, __file__],
        env=own | {"OPENBLAS_NUM_THREADS": "1", "THP_MEM_ALLOC_ENABLE": "1"},
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
    from fedstage.execution import fork_server

    fork_server.warm_up()
    sys.path.remove(str(Path(__file__).parent))  # of the script, where other calls have this folder
    for line in sys.stdin:
        described = json.loads(line)
        child = os.fork()
        if not child:
            begin(**described)
            sys.exit(snakemake.cli.main(sys.argv[1:]))
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def begin(arguments, output, environment, folder, umask):
    """Make this process one that a shell has started, with what a call describes."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    os.umask(umask)
    written = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for file, stream in (os.open(os.devnull, os.O_RDONLY), 0), (written, 1), (written, 2):
        os.dup2(file, stream)
    sys.argv = ["snakemake", *arguments]
    sys.path[:0] = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
    if "PYTHONPATH" in environment:
        forget()
    else:
        stand_by()
    signal.alarm(TIMEOUT)


def forget():
    """Forget what is imported of fedstage, one of whose modules is a plugin of snakemake."""
    from snakemake_interface_executor_plugins.registry import ExecutorPluginRegistry

    for module in [name for name in sys.modules if "fedstage" in name.partition(".")[0]]:
        del sys.modules[module]
    ExecutorPluginRegistry().collect_plugins()


def stand_by():
    """Fork, while there is one thread, the process that the first fork server will be."""
    from fedstage.execution import fork_server, pool

    ours, theirs = socket.socketpair()
    pid = os.fork()
    if not pid:
        ours.close()
        text, files, _, _ = socket.recv_fds(theirs, 2**16, 1)
        while part := theirs.recv(2**16):
            text += part
        try:
            if files:  # else nothing was to be done
                os.setsid()
                folder, variables = json.loads(text)
                os.chdir(folder)
                os.environ.clear()
                os.environ.update(variables)
                fork_server.main(socket.socket(fileno=files[0]))
        finally:  # after any error, since this is not another snakemake
            os._exit(0)
    theirs.close()

    def start(command, pass_fds, **options):
        if ours.fileno() < 0:
            return subprocess.Popen(command, pass_fds=pass_fds, **options)
        with ours:
            text = json.dumps([os.getcwd(), dict(os.environ)]).encode()
            sent = socket.send_fds(ours, [text], pass_fds)
            ours.sendall(text[sent:])
        return Standby(pid)

    pool.subprocess = SimpleNamespace(Popen=start, DEVNULL=subprocess.DEVNULL)


class Standby:
    """A process as `subprocess` has it."""

    def __init__(self, pid):
        self._pid, self._ended = pid, None

    def poll(self, how=os.WNOHANG):
        if self._ended is None:
            found, status = os.waitpid(self._pid, how)
            self._ended = os.waitstatus_to_exitcode(status) if found else None
        return self._ended

    def wait(self):
        return self.poll(0)

    def kill(self):
        if self.poll() is None:
            os.kill(self._pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
