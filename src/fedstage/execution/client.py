"""Hand a stage command to a warm worker, or run it in this process where there is none.

This file is run by itself, as ``python -S -E client.py STAGE ...``: it imports nothing of the
package and little of the standard library, because every job pays for its start.

The environment configures the client, and the pool that it starts:

    FEDSTAGE_WARM     0 runs everything in-process, as the option --no-warm does
    FEDSTAGE_OWNER    the process that the pool ends with; without one, nothing is warm
    FEDSTAGE_SOURCE   fingerprint of the source when the workflow was read; a pool that was started
                      for another one retires
    FEDSTAGE_WORKERS          workers that compute without GPU; by default one a core
    FEDSTAGE_WORKERS_PER_GPU  workers on each GPU; by default one
    FEDSTAGE_TIMEOUT          seconds after which a stage is taken for hung; by default a day
    CUDA_VISIBLE_DEVICES      the GPUs that the pool gives to its workers; by default all
"""

import _socket as socket
import array
import fcntl
import os
import stat
import sys
import time

# A request is one block of NUL-separated texts, with stdout and stderr passed beside it.
SEPARATOR = b"\0"
LENGTH = 8
RETIRED = b"retired"
BACKLOG = 128  # clients that wait while a pool imports what stages need
LISTENER = 3  # the number of the file with which a pool is started
CREDENTIALS = 12  # struct ucred: pid, uid, gid


def main(arguments: list[str]) -> int:
    """Run a stage warm and return its exit code, or become the process that runs it."""
    started = time.perf_counter() - process_age()
    if "--no-warm" in arguments:
        arguments = [argument for argument in arguments if argument != "--no-warm"]
    elif is_warm():
        return run_warm(arguments, started)
    os.execv(sys.executable, [sys.executable, "-m", "fedstage.execution.cli", *arguments])


def run_warm(arguments: list[str], started: float) -> int:
    """Send the command to the pool, starting one if there is none; return its exit code."""
    for _ in range(3):  # a pool may retire or end between connecting and sending
        try:
            connection = connect(socket_path())
        except OSError:
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
            sys.stderr.write(message.decode() + "\n")
        return int(code)
    sys.stderr.write("fedstage: no warm worker answered; --no-warm runs without them\n")
    return 1


def send_request(connection: socket.socket, arguments: list[str], started: float) -> None:
    """Send what a worker needs to run the command as this process would, and pass its output.

    These are the fingerprint of the source, the start, the working directory, the data folder, the
    permissions that new files do not get, and the arguments.
    """
    source, data = os.environ.get("FEDSTAGE_SOURCE", ""), os.environ.get("FEDSTAGE_DATA", "")
    fields = [source, repr(started), os.getcwd(), data, str(file_mask()), *arguments]
    payload = SEPARATOR.join(field.encode() for field in fields)
    files = array.array("i", [1, 2])
    header = len(payload).to_bytes(LENGTH, "little")
    connection.sendmsg([header], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files)])
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
    while len(data) < count:
        part = connection.recv(count - len(data))
        if not part:
            return None
        data += part
    return data


def connect(path: str) -> socket.socket:
    """Return a connection to the pool at `path`; the client with the lock starts a missing pool."""
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

    It gets a socket that listens already, so that clients may connect before it has started.
    """
    listener = listen(path)
    if child := os.fork():
        listener.close()
        os.waitpid(child, 0)
        return
    os.setsid()
    if os.fork():  # the pool is nobody's child: it is not waited for
        os._exit(0)
    null = os.open(os.devnull, os.O_RDWR)
    log = os.open(path + ".log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    listening = os.dup(listener.fileno())  # not 0 to 3, which are replaced
    for target, source in ((0, null), (1, log), (2, log), (LISTENER, listening)):
        os.dup2(source, target)
    os.closerange(LISTENER + 1, 1024)
    os.execv(sys.executable, [sys.executable, "-m", "fedstage.execution.pool", path])


def listen(path: str) -> socket.socket:
    """Return a socket that listens at `path`, private from the first moment on."""
    if os.path.exists(path):
        os.unlink(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    listener.bind(path)
    os.umask(before)
    listener.listen(BACKLOG)
    return listener


def start_early() -> None:
    """Start this environment's pool, unless there is one, and return while it imports."""
    if is_warm():
        connect(socket_path()).close()


def is_warm() -> bool:
    """Whether commands of this environment go to a pool."""
    return os.environ.get("FEDSTAGE_WARM") != "0" and bool(os.environ.get("FEDSTAGE_OWNER"))


def socket_path() -> str:
    """Return where the pool of this owner listens, in a directory that only this user can enter."""
    base = os.environ.get("XDG_RUNTIME_DIR") or os.environ.get("TMPDIR") or "/tmp"
    folder = f"{base}/fedstage-{os.getuid()}"
    if not os.path.exists(folder):
        os.makedirs(folder, 0o700, exist_ok=True)
    status = os.lstat(folder)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise SystemExit(f"fedstage: {folder} must be a directory that only you can enter")
    owner = os.environ["FEDSTAGE_OWNER"].replace("/", "_")
    return f"{folder}/{owner}.sock"  # short: a socket's path may have only 107 bytes


def process_age() -> float:
    """Return the seconds since this process was started, before any import (Linux: /proc)."""
    try:
        start = int(process_status("self")[19])  # field 22 of proc(5)
        with open("/proc/uptime") as file:
            uptime = float(file.read().split()[0])
    except OSError:
        return 0.0
    return max(0.0, uptime - start / os.sysconf("SC_CLK_TCK"))


def alive(pid: int) -> bool:
    """Whether a process exists that is not a zombie."""
    try:
        return process_status(str(pid))[0] not in "ZX"
    except OSError:
        return False


def process_status(pid: str) -> list[str]:
    """Return the fields of /proc/PID/stat behind the command name, from the third on."""
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
