"""Server optimisers: from the mean change of a round to the next weights.

The server takes Delta, the mean of (a participant's last weights - the weights all started from),
as if -Delta were a gradient (Reddi et al. 2021, Algorithm 2). An optimiser is a module with the
function `step`, found by the name of its settings, which takes what `server_step` takes. It works
on any dictionary of floating-point tensors, such as the parameters of a model or of an aggregator
over logits. Its state is a dictionary of tensors too, which can be written to a file between two
rounds.

Running statistics must not go through it: a variance that overshoots may become negative.
"""

from fedstage.algorithm.aggregation.fitting import fitting
from fedstage.errors import FedstageError
from fedstage.settings.aggregation import ServerOptimiser
from fedstage.settings.base import called, implementation
from fedstage.weights import Tensors, Weights


def server_step(
    settings: ServerOptimiser,
    weights: Tensors,
    change: Tensors,
    state: Tensors,
    share: float = 1.0,
) -> tuple[Weights, Weights]:
    """Return the next weights x_{t+1} and the next state, from x_t, Delta and the state before.

    Some optimisers also take the `share` P / N of clients that take part in a round.

    Computed in float64; weights and state are returned in the types of `weights`. The arguments
    stay unchanged. The state is empty before the first step. A round in which all participants
    diverged takes no step: do not call this function then.

    Raises
    ------
    FedstageError
        If the optimiser returns anything but such weights and state.
    """
    named = f"{called(settings, 'aggregation.server_optimizer')}: step"
    arguments = (settings, weights, change, state, share)[: len(settings.functions["step"])]
    made = implementation(settings).step(*arguments)
    if not (isinstance(made, tuple) and len(made) == 2):
        raise FedstageError(f"{named}: must return the next weights and the next state")
    after, memory = made
    return fitting(after, weights, named), memory
