"""FedAvg: plain training (McMahan et al. 2017; FedSDD, Eq. 2, gives the average over a group)."""

from collections.abc import Sequence

from torch import nn

from fedstage.algorithm.exchange.updates import Update
from fedstage.algorithm.local_trainers import Task, Trained
from fedstage.settings.local_training import FedAvg, LocalTrainer
from fedstage.training.loop import GradientTerm
from fedstage.training.passes import ModelLoss
from fedstage.weights import Tensors, Weights


def gradient_term(
    settings: FedAvg, start: Tensors, state: Tensors, client: int
) -> GradientTerm | None:
    """Return None: the gradient of the loss stays as it is."""
    return None


def prepare(model: nn.Module, state: Tensors, client: int) -> None:
    """Leave the model as it is: a client starts from the global one."""


def objective(settings: LocalTrainer, task: Task) -> ModelLoss | None:
    """Return None: a client minimises the loss of its logits."""
    return None


def payload(settings: LocalTrainer, trained: Trained, state: Tensors, client: int) -> Weights:
    """Return no tensors: a client sends its weights only."""
    return {}


def sent_down(start: Tensors, state: Tensors) -> Tensors:
    """Return no tensors: the server sends the global model only."""
    return {}


def next_state(
    settings: LocalTrainer, state: Tensors, updates: Sequence[Update], clients: int
) -> Tensors:
    """Return no tensors: FedAvg keeps no state."""
    return {}


def scales(payloads: Sequence[Tensors], shares: Sequence[float]) -> list[float] | None:
    """Return None: the server takes the mean of the changes."""
    return None
