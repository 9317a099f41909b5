"""FedAvg: plain training (McMahan et al. 2017; FedSDD, Eq. 2, gives the average over a group)."""

from collections.abc import Mapping, Sequence

from fedstage.algorithm.local_trainers import Trained
from fedstage.settings.local_training import FedAvg, LocalTrainer
from fedstage.storage.tensors import Weights
from fedstage.training.loop import GradientTerm


def gradient_term(
    settings: FedAvg, start: Weights, state: Weights, client: int
) -> GradientTerm | None:
    """Return nothing: the gradient is that of the loss."""
    return None


def payload(settings: LocalTrainer, trained: Trained, state: Weights, client: int) -> Weights:
    """Return nothing: only weights are sent."""
    return {}


def sent_down(start: Weights, state: Weights) -> Weights:
    """Return nothing: only the global model is sent."""
    return {}


def next_state(
    settings: LocalTrainer,
    state: Weights,
    payloads: Mapping[int, Weights],
    samples: Mapping[int, int],
    clients: int,
) -> Weights:
    """Return nothing: FedAvg remembers nothing."""
    return {}


def scales(payloads: Sequence[Weights], shares: Sequence[float]) -> list[float] | None:
    """Return nothing: the server takes the mean of the changes."""
    return None
