"""SCAFFOLD (Karimireddy et al. 2020, Algorithm 1).

    local step      w <- w - eta (g_i(w) - c_i + c)
    after E steps   c_i+ = c_i - c + (w_start - w_end) / sum of the steps' eta     (option II)
    server          c <- c + (1/N) sum over participants of a_i (c_i+ - c_i), of N clients in all

a_i is 1, as published. With the setting `weights` = ``samples`` it is the client's number of
samples over the participants' mean, as in FLamby's code, where all clients take part. All variates
start at 0, so that c is the mean of all N clients' c_i after every round; with ``samples`` it is
the weighted mean, as long as all take part. They belong to parameters, never to buffers. With a
schedule, E eta is the sum of the steps' rates. A client that diverged and was dropped leaves c and
its c_i unchanged.

Each global model has its own set of variates, as if each group were a separate run; FedEED and
FedSDD leave this open.
`exchange.round_state` describes the files. The server's variate c moves in `next_state`, with
secure aggregation in `server_state`; its step w <- w_start + eta_g mean(w_end - w_start) is part of
`aggregation`.
"""

from collections.abc import Sequence
from functools import partial

import torch
from torch import nn

from fedstage.algorithm.exchange.updates import Update
from fedstage.algorithm.local_trainers import LocalTrainer, Trained
from fedstage.settings.local_training import Scaffold
from fedstage.training.loop import GradientTerm
from fedstage.weights import Deferred, Entry, Tensors, Weights, entries_of, shapes_of, together


class Trainer(LocalTrainer[Scaffold]):
    """FedAvg with gradients corrected by control variates."""

    def gradient_term(self, start: Tensors, state: Tensors, client: int) -> GradientTerm | None:
        """Return g <- g - c_i + c."""
        server, own = _variate(start, state, "server"), _variate(start, state, f"client/{client}")
        corrections = [server[name] - own[name] for name in start]

        @torch.no_grad()
        def add(parameters: Sequence[nn.Parameter]) -> None:
            for parameter, correction in zip(parameters, corrections, strict=True):
                assert parameter.grad is not None
                parameter.grad.add_(correction)

        return add

    def payload(self, trained: Trained, state: Tensors, client: int) -> Weights:
        """Return c_i+ - c_i = -c + (w_start - w_end) / (E eta)."""
        start, end, rates = trained.start, trained.end, trained.outcome.rate_sum
        server = _variate(start, state, "server")
        return {name: (start[name] - end[name]) / rates - server[name] for name in start}

    def summed(self, start: Tensors) -> Tensors:
        """Return the parameters, since the server's variate moves by the sum of changes."""
        return start

    def sent_down(self, start: Tensors, state: Tensors) -> Tensors:
        """Return c, which is as large as the parameters."""
        kept, sent = entries_of(state), {}
        for name, like in shapes_of(start).items():
            zero = Entry(like, partial(torch.zeros, like.shape, dtype=like.dtype))
            sent[name] = kept.get(f"server/{name}", zero)
        return Deferred(sent)

    def next_state(self, state: Tensors, updates: Sequence[Update], clients: int) -> Tensors:
        """Return the state with c and the participants' c_i moved by their payloads.

        Each is added up when it is written, from one tensor of each payload.
        """
        samples = [int(update.metadata["samples"]) for update in updates]
        mean = sum(samples) / max(len(updates), 1)
        weights = [count / mean if self.settings.weights == "samples" else 1.0 for count in samples]
        moved: dict[str, Entry] = {}
        for name, like in (shapes_of(updates[0].payload) if updates else {}).items():
            added = partial(_moved_server, state, updates, weights, clients, name)
            moved[f"server/{name}"] = Entry(like, added)
            for update in updates:
                own = f"client/{update.metadata['client']}/{name}"
                moved[own] = Entry(like, partial(_moved, state, own, update.payload, name))
        return together(state, Deferred(moved))

    def server_state(self, state: Tensors, total: Tensors, clients: int) -> Tensors:
        """Return c + (1/N) sum of (c_i+ - c_i), in the types of `state`, or else float32."""
        moved = {}
        for name, change in total.items():
            before = state.get(f"server/{name}", torch.zeros(change.shape))
            moved[f"server/{name}"] = (before + change / clients).to(before.dtype)
        return moved


def _moved(state: Tensors, own: str, payload: Tensors, name: str) -> torch.Tensor:
    """Return c_i + (c_i+ - c_i)."""
    change = payload[name]
    return state.get(own, torch.zeros_like(change)) + change


def _moved_server(
    state: Tensors, updates: Sequence[Update], weights: Sequence[float], clients: int, name: str
) -> torch.Tensor:
    """Return c + (1/N) sum of a_i (c_i+ - c_i)."""
    shape = shapes_of(updates[0].payload)[name]
    total = state.get(f"server/{name}", torch.zeros(shape.shape, dtype=shape.dtype))
    for update, weight in zip(updates, weights, strict=True):
        total = total + weight * update.payload[name] / clients
    return total


def _variate(start: Tensors, state: Tensors, prefix: str) -> Weights:
    """Return a variate, zero where the state does not have it yet."""
    return {
        name: state[f"{prefix}/{name}"] if f"{prefix}/{name}" in state else torch.zeros_like(value)
        for name, value in start.items()
    }
