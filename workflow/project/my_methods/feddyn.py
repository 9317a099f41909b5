"""FedDyn (Acar et al. 2021, Algorithm 1), of P out of m clients in a round."""

from typing import ClassVar, Literal

import torch

from fedstage.algorithm.exchange.updates import part
from fedstage.algorithm.local_trainers import LocalTrainer
from fedstage.settings.aggregation import ServerStep
from fedstage.settings.base import Rate, Share
from fedstage.settings.local_training import LocalTraining


class FedDyn(LocalTraining):
    """L_k(w) - <g_k, w> + alpha / 2 ||w - w_start||^2; then g_k -= alpha (w_k - w_start)."""

    keeps_state: ClassVar[bool] = True
    name: Literal["feddyn"]
    alpha: Rate


class Trainer(LocalTrainer):
    def gradient_term(self, start, state, client):
        g = part(state, f"client/{client}/")

        @torch.no_grad()
        def add(parameters):
            for w, (name, anchor) in zip(parameters, start.items(), strict=True):
                w.grad.add_(w - anchor, alpha=self.settings.alpha).sub_(g.get(name, 0))

        return add

    def kept(self, trained, state, client):
        g, alpha = part(state, f"client/{client}/"), self.settings.alpha
        moved = {name: trained.end[name] - start for name, start in trained.start.items()}
        return {name: g.get(name, 0) - alpha * change for name, change in moved.items()}

    def next_state(self, state, updates, clients):
        own = [(f"client/{update.metadata['client']}", update.kept) for update in updates]
        new = {f"{client}/{name}": g for client, kept in own for name, g in kept.items()}
        return {**state, **new}


class FedDynServer(ServerStep):
    """h -= alpha P / m Delta; w += Delta - h / alpha, where Delta is the clients' mean change."""

    name: Literal["feddyn"]
    alpha: Rate
    share: Share  # P / m


def step(settings, weights, change, state):
    moved, after = {}, {}
    for name, w in weights.items():
        delta, h = change[name].double(), state.get(f"h/{name}", torch.zeros_like(w)).double()
        h = h - settings.alpha * settings.share * delta
        moved[name] = (w + delta - h / settings.alpha).to(w.dtype)
        after[f"h/{name}"] = h.to(w.dtype)
    return moved, after
