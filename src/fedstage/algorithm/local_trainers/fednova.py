"""FedNova (Wang et al. 2020): clients that take more steps do not count more.

A client's change w_i - w_start sums the gradients of its steps with weights of ||a_i||_1 in total,
times the learning rate. The server takes the mean of the changes per unit of that mass,

    w <- w_start + tau_eff sum_i p_i (w_i - w_start) / ||a_i||_1    tau_eff = sum_i p_i ||a_i||_1

so that the fixed point is that of the weighted loss, however many steps each client takes. A client
sends its mass beside its weights. Where all masses are equal, this is FedAvg.

The global momentum of the released code is the server optimiser ``momentum`` with a rate of 1.
"""

from collections.abc import Sequence

import torch

from fedstage.algorithm.local_trainers import Trained
from fedstage.algorithm.local_trainers.fedavg import (
    gradient_term,
    next_state,
    objective,
    prepare,
    sent_down,
)
from fedstage.settings.local_training import LocalTrainer
from fedstage.settings.optimisation import Client
from fedstage.training.schedules import factor
from fedstage.weights import Tensors, Weights

__all__ = ["gradient_term", "next_state", "objective", "payload", "prepare", "scales", "sent_down"]

_MASS = "gradient_mass"


def payload(settings: LocalTrainer, trained: Trained, state: Tensors, client: int) -> Weights:
    """Return ||a_i||_1, one number."""
    return {_MASS: torch.tensor(gradient_mass(trained.client, trained.outcome.steps))}


def gradient_mass(client: Client, steps: int) -> float:
    """Return ||a_i||_1: how far `steps` steps along a gradient of 1 move, in learning rates.

    Summed step by step with momentum, Nesterov's or not, and the schedule's factors. For a
    constant rate it is tau = `steps` without momentum, and with it
    (tau - rho (1 - rho^tau) / (1 - rho)) / (1 - rho). Weight decay is part of a gradient, as in the
    released code. Momentum starts anew in each round.
    """
    momentum, mass = 0.0, 0.0
    for step in range(steps):
        momentum = client.momentum * momentum + 1.0
        along = 1.0 + client.momentum * momentum if client.nesterov else momentum
        mass += factor(client.schedule, step, steps) * along
    return mass


def scales(payloads: Sequence[Tensors], shares: Sequence[float]) -> list[float]:
    """Return tau_eff / ||a_i||_1 of each participant; 0 for one that has taken no step."""
    masses = [float(payload[_MASS]) for payload in payloads]
    effective = sum(share * mass for share, mass in zip(shares, masses, strict=True))
    return [effective / mass if mass else 0.0 for mass in masses]
