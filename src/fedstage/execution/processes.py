"""Looking at processes."""

from pathlib import Path


def alive(pid: int) -> bool:
    """Whether a process exists that is not a zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"
