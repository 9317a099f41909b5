"""Which file a file is: its path below `results`, which every artefact states in itself.

Such a path names recipe, round, group, participant, client and seed. Writers state the path that
they write to, readers compare it with the path that they open, so that a copy in the place of
another file is refused by its readers. It is relative: the folder may be moved, renamed,
linked, or copied to another machine. Outside a folder of that name a path
identifies nothing, and nothing is compared.
"""

from pathlib import Path

from fedstage.errors import FedstageError
from fedstage.plan.results import RESULTS

#: The key of an artefact's own statements: in the metadata of Parquet, at the top of JSON and YAML.
SEAL = "fedstage"


def identity_of(path: str | Path) -> str | None:
    """Return the path below the nearest folder `results`, None where there is no such folder."""
    parts = Path(path).parts
    if RESULTS not in parts[:-1]:
        return None
    nearest = parts[-2::-1].index(RESULTS)
    return "/".join(parts[len(parts) - 1 - nearest :])


def check_identity(path: str | Path, stated: object) -> None:
    """Raise FedstageError unless the file at `path` states to be that file.

    A folder above may be a link into another folder `results`, so the end of the path counts.
    """
    expected = identity_of(path)
    if expected is None or f"/{expected}".endswith(f"/{stated}"):
        return
    if stated is None:
        reason = "does not state which file it is: an older version wrote it, or somebody moved it"
    else:
        reason = f"is {stated}, not {expected}: a copy in its place"
    raise FedstageError(f"{path}: {reason}; delete it to make it again")
