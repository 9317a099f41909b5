"""FedCM (Xu et al. 2021): clients' steps contain the last round's mean gradient."""

from typing import ClassVar, Literal

import torch

from fedstage.algorithm.exchange.updates import part
from fedstage.algorithm.local_trainers import LocalTrainer
from fedstage.settings.base import Share
from fedstage.settings.local_training import LocalTraining


class FedCm(LocalTraining):
    """w <- w - eta (alpha g(w) + (1 - alpha) m), where m is the mean gradient."""

    keeps_state: ClassVar[bool] = True
    name: Literal["fedcm"]
    alpha: Share = 0.1


class Trainer(LocalTrainer):
    def gradient_term(self, start, state, client):
        alpha, m = self.settings.alpha, part(state, "server/")

        @torch.no_grad()
        def add(parameters):
            for w, name in zip(parameters, start, strict=True):
                w.grad.mul_(alpha).add_(m.get(name, 0), alpha=1 - alpha)

        return add

    def sent_down(self, start, state):
        return start  # m is as large

    def kept(self, trained, state, client):
        rates, end = trained.outcome.rate_sum, trained.end
        return {name: (start - end[name]) / rates for name, start in trained.start.items()}

    def next_state(self, state, updates, clients):
        sent = [update.kept for update in updates]
        means = (
            {name: sum(own[name] for own in sent) / len(sent) for name in sent[0]} if sent else {}
        )
        return {**state, **{f"server/{name}": mean for name, mean in means.items()}}
