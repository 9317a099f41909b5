"""Buffered distillation: a frozen copy F_0 of the student is a second teacher (BKD, Eq. 4).

BKD is "Edge Bias in Federated Learning and its Solution by Buffered Knowledge Distillation".

    L_BKD = L_KD + weight tau^2 mean_x KL( sigma_tau(F_0(x)), sigma_tau(F(x)) )

F_0 is the student as its distillation starts; a melting buffer is copied again at the start of each
epoch over the public samples. F_0 uses its running statistics and sees the student's images: where
nothing is augmented, its logits are computed once after each copy. Temperature, its square and
sharpening are the server's, regardless of the loss to the teacher.
"""

import copy
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from fedstage.algorithm.global_trainers.distillation import distillation_loss
from fedstage.algorithm.global_trainers.objective import Seen, Term
from fedstage.data.bags import Samples
from fedstage.settings.numerics import Numerics
from fedstage.settings.server import Buffer, Server
from fedstage.training.loop import AfterStep
from fedstage.training.passes import PLAIN, compute_logits, forward

#: Copies the current model to F_0.
Refresh = Callable[[], None]


def cached_buffer(
    model: nn.Module,
    images: Samples,
    settings: Buffer,
    server: Server,
    info: Mapping[str, Any],
    numerics: Numerics = PLAIN,
) -> tuple[Term, Refresh]:
    """Return the term, with F_0's logits of all `images` looked up by index, and its refresh."""
    loss = distillation_loss(server)

    def current() -> torch.Tensor:
        logits = compute_logits(model, images, info, numerics).to(images.device)
        model.train()
        return logits

    before = current()

    def term(seen: Seen) -> torch.Tensor:
        return settings.weight * loss(seen.logits, before[seen.index])

    def refresh() -> None:
        before.copy_(current())

    return term, refresh


def live_buffer(
    model: nn.Module, settings: Buffer, server: Server, numerics: Numerics = PLAIN
) -> tuple[Term, Refresh]:
    """Return the term, with F_0's logits of the images that the student sees, and its refresh."""
    loss = distillation_loss(server)
    frozen = copy.deepcopy(model).eval().requires_grad_(False)

    def term(seen: Seen) -> torch.Tensor:
        with torch.no_grad():
            before = forward(frozen, seen.pixels, numerics)
        return settings.weight * loss(seen.logits, before)

    def refresh() -> None:
        frozen.load_state_dict(model.state_dict())

    return term, refresh


def melting(refresh: Refresh, epoch: int, steps: int) -> AfterStep:
    """Return the function to call after each step, which copies F_0 again where an epoch starts.

    An epoch has `epoch` steps. The function never ends the training.
    """

    def after_step(step: int) -> bool:
        if step % epoch == 0 and step < steps:
            refresh()
        return False

    return after_step
