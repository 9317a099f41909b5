"""SCAFFOLD (Karimireddy et al. 2020, Algorithm 1).

    local step      w <- w - eta (g_i(w) - c_i + c)
    after E steps   option I   c_i+ = g_i(w_start), of all of the client's data
                    option II  c_i+ = c_i - c + (w_start - w_end) / sum of the steps' eta
    server          c <- c + (1/N) sum over participants of a_i (c_i+ - c_i), of N clients in all

a_i is 1, as published, or by the setting `weights` = ``samples`` the client's samples over the mean
of the participants': so does FLamby's code, where all clients take part. All variates start at 0,
so that c is the mean of all N clients' c_i after every round; with ``samples`` the weighted mean,
as long as all take part. They belong to parameters, never to buffers. With a schedule, E eta is the
sum of the steps' rates. A client that diverged and was dropped leaves c and its c_i as they were.
Clients that are bound to another architecture than the group's are not among the N: their variates
stay 0.

There is one set of variates a global model (`control` = ``per_model``), as if each group were a run
of its own, or one for all (``shared``): a client's c_i is then that of its last round, whatever
model it was trained on. FedEED and FedSDD leave this open. `exchange.round_state` describes the
files. The server's step w <- w_start + eta_g mean(w_end - w_start) is part of the aggregation.
"""

from collections.abc import Sequence

import torch
from torch import nn

from fedstage.algorithm.exchange.updates import Update
from fedstage.algorithm.local_trainers import Trained
from fedstage.algorithm.local_trainers.fedavg import objective, prepare, scales
from fedstage.settings.local_training import Scaffold
from fedstage.training.loop import GradientTerm
from fedstage.weights import Weights

__all__ = ["gradient_term", "next_state", "objective", "payload", "prepare", "scales", "sent_down"]


def gradient_term(
    settings: Scaffold, start: Weights, state: Weights, client: int
) -> GradientTerm | None:
    """Return g <- g - c_i + c."""
    server, own = _variate(start, state, "server"), _variate(start, state, f"client/{client}")
    corrections = [server[name] - own[name] for name in start]

    @torch.no_grad()
    def add(parameters: Sequence[nn.Parameter]) -> None:
        for parameter, correction in zip(parameters, corrections, strict=True):
            assert parameter.grad is not None
            parameter.grad.add_(correction)

    return add


def payload(settings: Scaffold, trained: Trained, state: Weights, client: int) -> Weights:
    """Return c_i+ - c_i: g_i(w_start) - c_i, or -c + (w_start - w_end) / (E eta)."""
    start, end, rates = trained.start, trained.end, trained.outcome.rate_sum
    if settings.option == "I":
        gradient, own = trained.gradient_at_start(), _variate(start, state, f"client/{client}")
        return {name: gradient[name] - own[name] for name in start}
    server = _variate(start, state, "server")
    return {name: (start[name] - end[name]) / rates - server[name] for name in start}


def sent_down(start: Weights, state: Weights) -> Weights:
    """Return c, which is as large as the parameters."""
    return _variate(start, state, "server")


def next_state(
    settings: Scaffold, state: Weights, updates: Sequence[Update], clients: int
) -> Weights:
    """Return the state with c and the participants' c_i moved by their payloads."""
    moved = dict(state)
    mean = sum(int(update.metadata["samples"]) for update in updates) / max(len(updates), 1)
    for update in updates:
        by_samples = settings.weights == "samples"
        weight = int(update.metadata["samples"]) / mean if by_samples else 1.0
        for name, change in update.payload.items():
            own, server = f"client/{update.metadata['client']}/{name}", f"server/{name}"
            moved[own] = moved.get(own, torch.zeros_like(change)) + change
            moved[server] = moved.get(server, torch.zeros_like(change)) + weight * change / clients
    return moved


def _variate(start: Weights, state: Weights, prefix: str) -> Weights:
    """Return a variate, zero where the state does not have it yet."""
    return {
        name: state[f"{prefix}/{name}"] if f"{prefix}/{name}" in state else torch.zeros_like(value)
        for name, value in start.items()
    }
