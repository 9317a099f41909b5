"""Reading the logits of ensemble members, for teachers and for evaluated ensembles."""

from pathlib import Path

from fedstage.algorithm.ensemble_trainers import Members
from fedstage.errors import FedstageError
from fedstage.storage.tensors import load_tensors


def read_members(paths: list[Path]) -> list[Members]:
    """Read logits of ensemble members; parts without members (all dropped) are left out.

    Raises
    ------
    FedstageError
        If no member is left.
    """
    members = []
    for path in paths:
        tensors, notes = load_tensors(path)
        if notes["samples"]:
            said = (tensors["logits"], tuple(notes["samples"]))
            members.append(Members(notes["round"], notes["group"], *said, notes["members"]))
    if not members:
        raise FedstageError(f"{paths[0]}: no member of the ensemble is left, all diverged")
    return members
