"""What clients keep from round to round where the server gets sums only (secure aggregation)."""

from collections.abc import Sequence

from fedstage.algorithm.exchange.round_state import of_clients
from fedstage.algorithm.exchange.updates import Update
from fedstage.algorithm.local_trainers import LocalTrainer, local_trainer
from fedstage.errors import FedstageError
from fedstage.settings.recipes import Recipe
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
