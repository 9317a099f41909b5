"""What a report states about itself: the command that makes it, commit, versions, machines."""

import subprocess
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import fedstage
from fedstage.results.report.origins import Origin


def circumstances(
    experiment: str, scale: str, output: Path, origins: Sequence[Origin]
) -> dict[str, str]:
    """Return how an experiment's report, and the numbers in it, were made."""
    known = [origin for origin in origins if not origin.fault]
    return {
        "Experiment": f"`{experiment}`, scale `{scale}`, {len(origins)} runs",
        "Made by": f"`snakemake --cores all {output}`",
        "Made at": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "Commit": commit(Path(), Path(fedstage.__file__).parent),
        "Versions": _each(origin.versions for origin in known),
        "Machine": _each(origin.machine for origin in known),
    }


def commit(*folders: Path) -> str:
    """Return the commit of the first folder that is in a repository, and whether files differ."""
    for folder in folders:
        try:
            name = _git(folder, "rev-parse", "HEAD")
            changed = _git(folder, "status", "--porcelain", "--untracked-files=no")
        except (OSError, subprocess.CalledProcessError):
            continue
        return f"`{name}`" + (", with changes that are not committed" if changed else "")
    return "not in a git repository"


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _each(texts: Iterable[str]) -> str:
    """Join what runs have in common, each text once."""
    return "; ".join(dict.fromkeys(texts)) or "not recorded"
