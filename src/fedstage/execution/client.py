"""Hand a stage command to a warm worker, or run it in this process if there is none.

This file is run by itself, as ``python -S -E client.py STAGE ...``: it imports nothing of the
package and little of the standard library, because every job pays for its start.

The environment configures the client, and the pool that it starts:

    FEDSTAGE_WARM     0 runs everything in-process, as the option --no-warm does
    FEDSTAGE_OWNER    the process that the pool ends with; without one, nothing is warm
    FEDSTAGE_SOURCE   fingerprint of the source of the plan; a pool of another source retires
    FEDSTAGE_WORKERS          workers that compute without GPU; by default one a core
    FEDSTAGE_WORKERS_PER_GPU  workers on each GPU; by default one
    FEDSTAGE_IGNORES_CTRL_C   1 where snakemake does, as in background jobs of a shell's script
    FEDSTAGE_TIMEOUT          seconds after which a stage is considered hung; by default a day
    CUDA_VISIBLE_DEVICES      the GPUs that the pool gives to its workers; by default all
"""

import _signal as signal  # type: ignore[import-not-found]  # `signal` imports enum, which takes long
import _socket as socket
import array
import fcntl
import os
import stat
import sys
import time

# A request is one block of NUL-separated texts, with stdout and stderr passed with it.
SEPARATOR = b"\0"
LENGTH = 8
RETIRED = b"retired"
BACKLOG = 128  # clients that wait while a pool imports what stages need
LISTENER = 3  # the number of the file with which a pool is started
CREDENTIALS = 12  # struct ucred: pid, uid, gid
LONGEST = 107  # bytes of a socket's path
PYTHON = (sys.executable, "-X", "utf8", "-m")  # in any locale, since names may have any letters
NAMES = 10  # folders that are tried if other users have taken the first names


def main(arguments: list[str]) -> int:
    """Run a stage warm and return its exit code, or become the process that runs it."""
    started = time.perf_counter() - process_age()
    open_standard_files()
    if "--no-warm" in arguments:
        arguments = [argument for argument in arguments if argument != "--no-warm"]
    elif is_warm():
        return run_warm(arguments, started)
    os.execv(sys.executable, [*PYTHON, "fedstage.execution.cli", *arguments])


def run_warm(arguments: list[str], started: float) -> int:
    """Send the command to the pool, starting one if there is none; return its exit code."""
    path, fault = socket_path(), ""
    for _ in range(3):  # a pool may retire or end between connecting and sending
        try:
            connection = connect(path)
        except OSError as error:
            fault = str(error)
            continue
        try:
            send_request(connection, arguments, started)
            answer = receive(connection)
        except OSError:
            continue
        finally:
            connection.close()
        if answer is None or answer == RETIRED:
            continue
        code, _, message = answer.partition(SEPARATOR)
        if message:
            tell(message + b"\n", arguments)
        return int(code)
    os.write(2, os.fsencode(no_answer(path, fault) + "\n"))
    return 1


def tell(message: bytes, arguments: list[str]) -> None:
    """Print how a worker ended, and write it into the log of its job: the worker no longer can."""
    os.write(2, message)
    try:
        with open(arguments[arguments.index("--log") + 1], "wb") as log:
            log.write(message)
    except (OSError, ValueError, IndexError):  # the disk is full, or the job has no log
        pass


def open_standard_files() -> None:
    """Open files 0, 1 and 2 if they are closed, or a socket would become standard output."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number


def no_answer(path: str, fault: str) -> str:
    """Return the message for a pool that does not answer."""
    log, seen = f"{path}.log", fault or "it ended"
    where = f"{seen}; see {log}" if os.path.exists(log) else seen
    return f"fedstage: no warm worker answered ({where}); FEDSTAGE_WARM=0 runs without them"


def send_request(connection: socket.socket, arguments: list[str], started: float) -> None:
    """Send what a worker needs to run the command as this process would, and pass its output.

    These are the fingerprint of the source, the start, the working directory, the data folder, the
    permissions that new files do not get, and the arguments.
    """
    source, data = os.environ.get("FEDSTAGE_SOURCE", ""), os.environ.get("FEDSTAGE_DATA", "")
    fields = [source, repr(started), os.getcwd(), data, str(file_mask()), *arguments]
    payload = SEPARATOR.join(os.fsencode(field) for field in fields)
    rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [1, 2]))
    connection.sendmsg([len(payload).to_bytes(LENGTH, "little")], [rights])
    connection.sendall(payload)


def file_mask() -> int:
    """Return this process's umask, which can be read only by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def receive(connection: socket.socket) -> bytes | None:
    """Return one length-prefixed block, or None if the other side has gone."""
    header = receive_exactly(connection, LENGTH)
    return None if header is None else receive_exactly(connection, int.from_bytes(header, "little"))


def receive_exactly(connection: socket.socket, count: int) -> bytes | None:
    """Return `count` bytes, or None at the end of the stream."""
    data = b""
    while len(data) < count and (part := connection.recv(count - len(data))):
        data += part
    return data if len(data) == count else None


def connect(path: str) -> socket.socket:
    """Return a connection to the pool at `path`; a missing pool is started by one locked client."""
    if connection := try_connect(path):
        return connection
    with open(path + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if connection := try_connect(path):
            return connection
        start_pool(path)
        if connection := try_connect(path):
            return connection
    raise OSError(f"{path}: no connection")


def try_connect(path: str) -> socket.socket | None:
    """Return a connection to a pool of this user, or None."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(path)
    except OSError:
        connection.close()
        return None
    if peer_uid(connection) != os.getuid():
        connection.close()
        raise SystemExit(f"fedstage: {path} belongs to another user")
    return connection


def peer_uid(connection: socket.socket) -> int:
    """Return the user id of the process at the other end."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS)
    return int.from_bytes(credentials[4:8], sys.byteorder)


def start_pool(path: str) -> None:
    """Start a pool in a session of its own, so that Ctrl-C reaches clients only.

    The pool gets a socket that already listens, so clients may connect before it has started.
    """
    log = os.open(path + ".log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    listener = listen(path)
    if child := os.fork():
        listener.close()
        os.close(log)
        os.waitpid(child, 0)
        return
    try:
        os.setsid()
        if os.fork() == 0:  # no process waits for the pool
            become_pool(path, listener, log)
    finally:  # after any error, since this is not another client
        os._exit(1)


def become_pool(path: str, listener: socket.socket, log: int) -> None:
    """Replace this process by a pool, whose output goes into a log."""
    null = os.open(os.devnull, os.O_RDWR)
    # Copies with numbers above 3, since 0 to 3 are replaced: a client may have been started without
    # standard input or output.
    files = [fcntl.fcntl(file, fcntl.F_DUPFD, LISTENER + 1) for file in (null, log, listener)]
    for target, source in ((0, files[0]), (1, files[1]), (2, files[1]), (LISTENER, files[2])):
        os.dup2(source, target)
    os.closerange(LISTENER + 1, 1024)
    os.execv(sys.executable, [*PYTHON, "fedstage.execution.pool", path])


def listen(path: str) -> socket.socket:
    """Return a socket that listens at `path`, private from the first moment on."""
    if os.path.exists(path):
        os.unlink(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listener.bind(path)
    finally:
        os.umask(before)
    listener.listen(BACKLOG)
    return listener


def start_early() -> None:
    """Start this environment's pool, unless there is one, and return while it imports."""
    if is_warm():
        path = socket_path()
        try:
            connect(path).close()
        except OSError as error:
            raise SystemExit(no_answer(path, str(error))) from None


def is_warm() -> bool:
    """Whether commands of this environment go to a pool."""
    return os.environ.get("FEDSTAGE_WARM") != "0" and bool(os.environ.get("FEDSTAGE_OWNER"))


def socket_path() -> str:
    """Return where the pool of this owner listens, in a folder that only this user can enter.

    The folder is in XDG_RUNTIME_DIR, TMPDIR or /tmp: the first in which it can be made and whose
    path is not too long for a socket. All clients of an environment find the same folder.
    """
    owner = os.environ["FEDSTAGE_OWNER"].replace("/", "_")
    bases = [os.environ.get("XDG_RUNTIME_DIR"), os.environ.get("TMPDIR"), "/tmp"]
    for base in filter(None, bases):
        for number in range(NAMES):
            folder = f"{base}/fedstage-{os.getuid()}" + (f"-{number}" if number else "")
            path = f"{folder}/{owner}.sock"
            if len(os.fsencode(path)) > LONGEST or not make_folder(folder):
                break
            if is_own(folder):
                return path
    raise SystemExit(
        "fedstage: no place for the socket of warm workers in $XDG_RUNTIME_DIR, $TMPDIR or /tmp: "
        "name a folder of your own with a short path in XDG_RUNTIME_DIR; FEDSTAGE_WARM=0 runs "
        "without warm workers"
    )


def make_folder(folder: str) -> bool:
    """Make a folder, unless something has its name; return whether something has it now."""
    try:
        os.mkdir(folder, 0o700)
    except OSError:
        return os.path.lexists(folder)
    return True


def is_own(folder: str) -> bool:
    """Whether a folder belongs to this user, not to another one who made it first."""
    status = os.lstat(folder)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        return False
    if status.st_mode & 0o077:
        raise SystemExit(
            f"fedstage: {folder} must be a directory that only you can enter: chmod 700 {folder}"
        )
    return True


def process_age() -> float:
    """Return the seconds since this process was started, before any import (Linux: /proc)."""
    try:
        start = int(process_status("self")[19])  # field 22 of proc(5)
        with open("/proc/uptime") as file:
            uptime = float(file.read().split()[0])
    except OSError:
        return 0.0
    return max(0.0, uptime - start / os.sysconf("SC_CLK_TCK"))


def process_status(pid: str) -> list[str]:
    """Return the fields of /proc/PID/stat behind the command name, from the third on."""
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()


if __name__ == "__main__":
    try:
        if os.environ.get("FEDSTAGE_IGNORES_CTRL_C") != "1":
            signal.signal(signal.SIGINT, signal.default_int_handler)  # see workflow/bin/fedstage
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
