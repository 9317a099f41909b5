"""Participation: the client of each slot of a round."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fedstage.data.bound_participation import draw_bound
from fedstage.errors import FedstageError
from fedstage.randomness import numpy_generator
from fedstage.settings.slots import Binding

#: One row a slot of a round: `client` trains in `slot` (from 0) of `round` (from 1).
SCHEMA = pa.schema([("round", pa.int32()), ("slot", pa.int32()), ("client", pa.int32())])


def draw(clients: int, participants: int, seed: int, round: int) -> npt.NDArray[np.int64]:
    """Draw the participants of a round, [participants], uniformly and without replacement.

    The generator's key is (seed, round), so a round's draw does not depend on other rounds, and
    fewer participants are the first ones of more. The order is random even if all clients
    participate: the slots decide the groups.

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


def participants_of(
    clients: int, participants: int, seed: int, round: int, binding: Binding | None
) -> npt.NDArray[np.int64]:
    """Return the client of each slot of a round, in keeping with `binding`.

    Raises
    ------
    FedstageError
        As `draw`, or if the binding has other numbers of slots and clients or is impossible.
    """
    if binding is None:
        return draw(clients, participants, seed, round)
    slots, bound = len(binding.slots), len(binding.clients)
    if (slots, bound) != (participants, clients):
        raise FedstageError(
            f"binding: of {slots} slots and {bound} clients: must be of participants = "
            f"{participants} and clients = {clients}"
        )
    return draw_bound(binding, seed, round)


def table(
    clients: int,
    participants: int,
    seed: int,
    first: int,
    last: int,
    binding: Binding | None = None,
) -> dict[str, npt.NDArray[np.int64]]:
    """Return the columns of `SCHEMA` for the rounds `first` to `last`, both included.

    Raises
    ------
    FedstageError
        If `last` is below `first`, or as for `participants_of`.
    """
    if last < first:
        raise FedstageError(f"last = {last}: at least first = {first}")
    rounds = np.arange(first, last + 1)
    drawn = [participants_of(clients, participants, seed, int(t), binding) for t in rounds]
    return {
        "round": np.repeat(rounds, participants),
        "slot": np.tile(np.arange(participants), len(rounds)),
        "client": np.concatenate(drawn),
    }
