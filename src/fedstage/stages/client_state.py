"""Stage `client_state`: what clients keep from round to round under secure aggregation."""

from pathlib import Path

from fedstage.algorithm.aggregation.client_state import next_states
from fedstage.algorithm.exchange.updates import read_updates
from fedstage.algorithm.secure.messages import answered, read_messages
from fedstage.plan.inputs import ClientStateInputs
from fedstage.settings.recipes import Recipe
from fedstage.storage.opened import open_tensors
from fedstage.storage.tensors import save_tensors


def client_state(recipe: Recipe, read: ClientStateInputs[Path], *, output: Path) -> None:
    """Write the states of all clients of a group after a round.

    A participant whose masked vector has not arrived is not in the sums, so it keeps its previous
    state, and the server's control variate stays the mean of the clients'.
    """
    receipts = read_messages(read.receipts)
    arrived = answered(receipts)
    updates = [
        update
        for update in read_updates(read.own_updates)
        if update.metadata["participant"] in arrived
    ]
    before = open_tensors(read.state)[0] if read.state else {}
    place = {key: receipts[0].metadata[key] for key in ("round", "group")}
    save_tensors(output, next_states(recipe, before, updates), place)
