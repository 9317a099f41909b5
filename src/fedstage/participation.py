"""Participation: which client each slot of a round is."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fedstage.errors import FedstageError
from fedstage.randomness import numpy_generator

#: One row a slot of a round: `client` trains in `slot` (from 0) of `round` (from 1).
SCHEMA = pa.schema([("round", pa.int32()), ("slot", pa.int32()), ("client", pa.int32())])


def draw(clients: int, participants: int, seed: int, round: int) -> npt.NDArray[np.int64]:
    """Draw the participants of a round, uniformly and without replacement.

    The generator's key is (seed, round), so a round's draw is the same whichever rounds are drawn
    with it, and fewer participants are the first ones of more. The order is random even if all
    clients take part: the slots decide the groups.

    Returns
    -------
    array of shape [participants]
        The client of each slot.

    Raises
    ------
    FedstageError
        If there are more participants than clients, none, or `round` is below 1.
    """
    if not 1 <= participants <= clients:
        raise FedstageError(f"participants = {participants}: from 1 to clients = {clients}")
    if round < 1:
        raise FedstageError(f"round = {round}: at least 1")
    return numpy_generator(seed, "participation", round).permutation(clients)[:participants]


def table(
    clients: int, participants: int, seed: int, first: int, last: int
) -> dict[str, npt.NDArray[np.int64]]:
    """Return the columns of `SCHEMA` for the rounds `first` to `last`, both included.

    Raises
    ------
    FedstageError
        If `last` is below `first`, or as for `draw`.
    """
    if last < first:
        raise FedstageError(f"last = {last}: at least first = {first}")
    rounds = np.arange(first, last + 1)
    return {
        "round": np.repeat(rounds, participants),
        "slot": np.tile(np.arange(participants), len(rounds)),
        "client": np.concatenate([draw(clients, participants, seed, int(t)) for t in rounds]),
    }
