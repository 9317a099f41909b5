"""A student learns a lesson on public images, with the settings of a server."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from fedstage.algorithm.global_trainers.buffer import cached_buffer, live_buffer, melting
from fedstage.algorithm.global_trainers.factor_transfer import factors
from fedstage.algorithm.global_trainers.kept_weights import (
    Best,
    early_stopping,
    moving_average,
    weight_average,
)
from fedstage.algorithm.global_trainers.objective import (
    LiveTargets,
    Term,
    sum_of,
    to_labels,
    to_live_targets,
    to_targets,
)
from fedstage.algorithm.global_trainers.teachers import Teacher
from fedstage.data.bags import Samples
from fedstage.data.samples import read_labelled
from fedstage.errors import FedstageError
from fedstage.models.loading import state_of
from fedstage.protocol.server import adds_terms, has_factors
from fedstage.randomness import Key, torch_generator
from fedstage.settings.numerics import Numerics
from fedstage.settings.server import Server
from fedstage.training.batch_norm import re_estimate
from fedstage.training.batches import epoch_steps, public_batches, public_steps
from fedstage.training.images import augment, draw
from fedstage.training.loop import AfterStep, train
from fedstage.training.passes import PLAIN, Loss
from fedstage.weights import Weights


@dataclass(frozen=True)
class Taught:
    """Public samples, and what a student learns about them.

    Attributes
    ----------
    images : Samples
        Such as uint8 [n, C, H, W], on the student's device.
    targets : torch.Tensor, optional
        [n, ...] for the student's loss; None where teachers are live.
    labels : torch.Tensor, optional
        [n], if the public samples have labels.
    live : callable, optional
        Returns targets of the images that the student sees.
    """

    images: Samples
    targets: torch.Tensor | None
    labels: torch.Tensor | None = None
    live: LiveTargets | None = None


def teach(
    model: nn.Module,
    lesson: Taught,
    loss: Loss,
    server: Server,
    numerics: Numerics,
    info: Mapping[str, Any],
    key: tuple[Key, ...],
    name: str,
    *,
    teachers: Sequence[Teacher] = (),
    server_validation: Path | None = None,
) -> tuple[Weights, dict[str, Any]]:
    """Train a student; return its weights, and metadata of its training.

    Parameters
    ----------
    loss : callable
        Loss of the student's logits against the lesson's targets.
    key : tuple
        Key of the random generators.
    name : str
        The student's name in messages.
    teachers : sequence of Teacher, optional
        Teachers whose feature maps the student learns, too.
    server_validation : Path, optional
        The server's own labelled images, where training may stop early.

    Raises
    ------
    FedstageError
        If the student diverges.
    """
    images = lesson.images
    steps = public_steps(len(images), server)
    kept = _kept(model, steps, lesson, server, numerics, info, name, server_validation)
    hooks, trained, minimised, targets = [*kept.hooks], model, None, lesson.targets
    if adds_terms(server):
        terms, renewals = _terms(model, steps, lesson, loss, server, numerics, info)
        hooks.extend(renewals)
        if has_factors(server):
            trained, term = factors(model, teachers, images, server, info, key, name, numerics)
            terms.append(term)
        minimised = sum_of(terms, numerics)
        targets = torch.arange(len(images), device=images.device)
    assert targets is not None, "there is something to learn"
    outcome = train(
        trained,
        images,
        targets,
        public_batches(len(images), server.batch_size, steps, torch_generator(*key, "batches")),
        server,
        loss,
        info,
        torch_generator(*key, "augmentation"),
        numerics,
        objective=minimised,
        after_step=in_turn(hooks),
    )
    if outcome.diverged_at is not None:
        raise FedstageError(
            f"{name}: the loss is not finite at step {outcome.diverged_at}; lower "
            f"server.learning_rate = {server.learning_rate}"
        )
    if kept.averages is not None:
        drawn = draw(server.augmentation, len(images), torch_generator(*key, "statistics"))
        take(model, kept.averages, augment(images, drawn.to(images.device)), info, numerics)
    if kept.best is not None:
        stopped = {"steps": outcome.steps, "best_step": kept.best.step}
        return kept.best.weights, {"loss": outcome.loss} | stopped
    return state_of(model), {"loss": outcome.loss}


@dataclass(frozen=True)
class _Kept:
    """Which weights of a training are kept: the last ones, if the other fields are empty."""

    hooks: tuple[AfterStep, ...] = ()
    averages: list[torch.Tensor] | None = None
    best: Best | None = None


def _kept(
    model: nn.Module,
    steps: int,
    lesson: Taught,
    server: Server,
    numerics: Numerics,
    info: Mapping[str, Any],
    name: str,
    server_validation: Path | None,
) -> _Kept:
    """Return what the settings keep of `steps` steps: a mean, the best weights or the last."""
    if server.swa is not None:
        last = server.swa.start + server.swa.every
        if last > steps:
            raise FedstageError(
                f"{name}: server.swa.start = {server.swa.start}, every = {server.swa.every}: no "
                f"weights to average in {steps} steps, which server.epochs = {server.epochs} are"
            )
        hook, averages = weight_average(model, server.swa)
        return _Kept((hook,), averages)
    if server.moving_average is not None:
        epoch = epoch_steps(len(lesson.images), server.batch_size)
        hook, averages = moving_average(model, server.moving_average, epoch, steps)
        return _Kept((hook,), averages)
    if server.early_stopping is not None:
        assert server_validation is not None, "the graph gives it to such a recipe"
        validation = read_labelled(server_validation, None, lesson.images.device)
        hook, best = early_stopping(model, server.early_stopping, steps, validation, info, numerics)
        return _Kept((hook,), best=best)
    return _Kept()


def _terms(
    model: nn.Module,
    steps: int,
    lesson: Taught,
    loss: Loss,
    server: Server,
    numerics: Numerics,
    info: Mapping[str, Any],
) -> tuple[list[Term], list[AfterStep]]:
    """Return the terms of logits that a student minimises, and hooks that renew them."""
    terms: list[Term] = []
    renewals: list[AfterStep] = []
    if server.labels:
        assert lesson.labels is not None, "checked by Recipe: public samples are labelled"
        terms.append(to_labels(lesson.labels, server.labels))
    if lesson.live is not None:
        terms.append(to_live_targets(lesson.live, loss))
    else:
        assert lesson.targets is not None, "what is not live is cached"
        terms.append(to_targets(lesson.targets, loss))
    buffer = server.buffer
    if buffer is not None and buffer.weight:
        if server.augmentation == "none":
            term, renew = cached_buffer(model, lesson.images, buffer, server, info, numerics)
        else:
            term, renew = live_buffer(model, buffer, server, numerics)
        terms.append(term)
        if buffer.refresh == "epoch":
            epoch = epoch_steps(len(lesson.images), server.batch_size)
            renewals.append(melting(renew, epoch, steps))
    return terms, renewals


def in_turn(hooks: Sequence[AfterStep]) -> AfterStep | None:
    """Return a hook that calls all hooks after each step, and ends the training if any does."""
    if not hooks:
        return None

    def after_step(step: int) -> bool:
        ends = [hook(step) for hook in hooks]
        return any(ends)

    return after_step


@torch.no_grad()
def take(
    model: nn.Module,
    averages: Sequence[torch.Tensor],
    images: Samples,
    info: Mapping[str, Any],
    numerics: Numerics = PLAIN,
) -> None:
    """Replace the model's parameters by the averages.

    Running statistics are not averaged but estimated on the images, as FedBE does on its unlabelled
    ones. These are the training images, augmented if training augmented them, so that the
    statistics are of the same images as for a student that keeps its last weights.
    """
    for parameter, average in zip(model.parameters(), averages, strict=True):
        parameter.copy_(average)
    re_estimate(model, images, info, numerics)
