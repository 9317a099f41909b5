"""Stage `client_state`: what clients keep from round to round under secure aggregation."""

from collections.abc import Sequence
from pathlib import Path

from fedstage.algorithm.exchange.round_state import of_clients
from fedstage.algorithm.exchange.updates import Update, read_updates
from fedstage.algorithm.local_trainers import LocalTrainer, local_trainer
from fedstage.algorithm.secure.messages import answered, read_messages
from fedstage.errors import FedstageError
from fedstage.plan.inputs import ClientStateInputs
from fedstage.settings.recipes import Recipe
from fedstage.storage.tensors import open_tensors, save_tensors
from fedstage.weights import Tensors


def next_states(recipe: Recipe, before: Tensors, updates: Sequence[Update]) -> Tensors:
    """Return the clients' part of the round state, named client/ID/NAME.

    Parameters
    ----------
    before : mapping
        The clients' part after the previous round; empty in the first round.
    updates : sequence of Update
        The updates of the participants in the round's sums.

    Raises
    ------
    FedstageError
        If the server's part of the state cannot be computed from sums.
    """
    trainer = local_trainer(recipe.local)
    after = trainer.next_state(before, updates, recipe.clients)
    own = of_clients(after)
    lost = after.keys() - own.keys()
    if lost and type(trainer).server_state is LocalTrainer.server_state:
        raise FedstageError(
            f"local = {recipe.local.name}: next_state returns {min(lost)!r}: must be returned by "
            "server_state, too, with aggregation.secure, by which the server gets sums alone"
        )
    return own


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
