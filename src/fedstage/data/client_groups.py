"""Groups that clients belong to before training, and the participants that follow from them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from fedstage.randomness import numpy_generator


def draw_groups(clients: int, groups: int, seed: int) -> npt.NDArray[np.int64]:
    """Draw the group of each client, uniformly and independently (Fed-ET, section 4)."""
    return numpy_generator(seed, "client_groups").integers(groups, size=clients)


def by_group(
    participants: Mapping[str, npt.NDArray[np.int64]], group_of: npt.NDArray[np.int64], groups: int
) -> dict[str, list[Any]]:
    """Return a table in which each group has as many participants as each round had before.

    The i-th of m participants of a round becomes participant m g + i, for its group g; the other
    groups' i-th participants are absent (None).

    Parameters
    ----------
    participants : mapping
        The columns of `fedstage.data.participation.SCHEMA`.
    group_of : array
        The group of each client, [clients].
    """
    size = 1 + int(participants["participant"].max())
    rows: dict[str, list[Any]] = {"round": [], "participant": [], "client": []}
    for round_ in np.unique(participants["round"]).tolist():
        clients: list[int | None] = [None] * (groups * size)
        here = participants["round"] == round_
        for participant, client in zip(
            participants["participant"][here], participants["client"][here], strict=True
        ):
            clients[int(group_of[client]) * size + int(participant)] = int(client)
        rows["round"] += [round_] * len(clients)
        rows["participant"] += range(len(clients))
        rows["client"] += clients
    return rows
