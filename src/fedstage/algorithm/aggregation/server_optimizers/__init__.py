"""Server optimisers: from the mean change of a round to the next weights.

The server takes Delta, the mean of (what a participant ended with - what all started from), as if
-Delta were a gradient (Reddi et al. 2021, Algorithm 2). An optimiser is a module with the function
`step`, found by the name of its settings. It works on any dictionary of floating-point tensors,
such as a model's parameters or those of an aggregator over logits. Its state is a dictionary of
tensors too, which can be written to a file between two rounds.

Running statistics must not go through it: a variance that overshoots may become negative.
"""

from importlib import import_module
from typing import Any, Protocol, cast

from fedstage.settings.aggregation import ServerOptimiser
from fedstage.storage.tensors import Weights


class ServerStep(Protocol):
    """The function that a server optimiser's module has."""

    def step(
        self, settings: Any, weights: Weights, change: Weights, state: Weights
    ) -> tuple[Weights, Weights]:
        """Return the next weights and the next state, as `server_step` does."""


def server_step(
    settings: ServerOptimiser, weights: Weights, change: Weights, state: Weights
) -> tuple[Weights, Weights]:
    """Return the next weights x_{t+1} and the next state.

    Computed in float64; weights and state are returned in the types of `weights`. Nothing that is
    handed in is changed. A round in which nobody answered takes no step: do not call it then.

    Parameters
    ----------
    settings : ServerOptimiser
        Which optimiser, its rates and variants.
    weights : dict
        x_t, floating-point tensors by name.
    change : dict
        Delta, of the same names and shapes.
    state : dict
        What the step before returned; empty before the first.
    """
    module = import_module(f"fedstage.algorithm.aggregation.server_optimizers.{settings.name}")
    return cast(ServerStep, module).step(settings, weights, change, state)
