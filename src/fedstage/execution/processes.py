"""The processes of this machine."""

from fedstage.execution.client import process_status


def alive(pid: int) -> bool:
    """Whether a process exists that is not a zombie."""
    try:
        return process_status(str(pid))[0] not in "ZX"
    except OSError:
        return False
