"""Rules that combine the models of a group's participants into one, in place of their average.

A rule is a module with the function `combine`, found by the name of its settings, which takes what
`combined` takes. It gets all models at once, since a median or a distance needs them; averages are
sums, and are computed separately. Its result is treated as an average: the server's rate, or
optimiser, moves the group's model towards it. Only a rule that uses the shares takes numbers of
samples into account.
"""

from collections.abc import Sequence

from fedstage.algorithm.aggregation.fitting import fitting
from fedstage.errors import FedstageError
from fedstage.protocol.groups import fewest_models
from fedstage.settings.aggregation import ModelRule
from fedstage.settings.base import called, implementation
from fedstage.weights import Weights


def combined(
    settings: ModelRule, models: Sequence[Weights], shares: Sequence[float], start: Weights
) -> Weights:
    """Return one model, with buffers, in the types of the participants' `models`.

    `shares` are p_n, which sum to 1. `start` holds the parameters of the group's model before the
    round, and no buffers: its names are the names of the parameters.

    Raises
    ------
    FedstageError
        If there are too few models, because participants were absent or dropped, or if the result
        is not such a model.
    """
    if len(models) < (fewest := fewest_models(settings)):
        raise FedstageError(
            f"aggregation.rule = {settings.name!r}: {len(models)} participants in a group have "
            f"sent a model: with these settings it needs at least {fewest}"
        )
    made = implementation(settings).combine(settings, models, shares, start)
    return fitting(made, models[0], f"{called(settings, 'aggregation.rule')}: combine")
