"""A participant's round: from the global model and its own samples to its update.

w_start -> steps of the local trainer -> weights, payload, and what compression leaves out
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from fedstage.algorithm.exchange.compression import transmit
from fedstage.algorithm.exchange.round_state import own_parts, residual_of, variates_of
from fedstage.algorithm.exchange.updates import part
from fedstage.algorithm.local_trainers import Task, Trained, local_trainer
from fedstage.data.bags import Samples
from fedstage.errors import FedstageError
from fedstage.models.heads import features_of
from fedstage.models.loading import fill_model, new_model, parameters_of, state_of
from fedstage.models.parts import kept_by_clients, merged_names
from fedstage.protocol.digests import own_key
from fedstage.protocol.groups import model_of
from fedstage.protocol.privacy import example_privacy
from fedstage.randomness import seed_globals, torch_generator
from fedstage.settings.recipes import Recipe
from fedstage.training.batches import (
    NoisyBatches,
    client_batches,
    noisy_batches,
)
from fedstage.training.loop import GradientTerm, Outcome, training
from fedstage.training.losses import client_loss, scalar
from fedstage.training.optimisers import round_factor
from fedstage.weights import Tensors, Weights, together, without

Metadata = dict[str, Any]
#: A step before a client's training. It may change the model, and returns the targets of the
#: samples, which are their labels otherwise.
Lesson = Callable[[nn.Module, Samples, torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class Participant:
    """A participant of group k in round t: its client, with n samples and labels on the device.

    It starts from w*_{b,k}, where b is `base_round`: t - 1, if it is not stale.
    """

    round: int
    group: int
    participant: int
    client: int
    samples: Samples
    labels: torch.Tensor
    base_round: int

    @property
    def metadata(self) -> Metadata:
        """Metadata of the update's file."""
        place = {
            name: getattr(self, name)
            for name in ("round", "group", "participant", "client", "base_round")
        }
        return place | {"samples": len(self.samples)}


@dataclass(frozen=True)
class Start:
    """w*_{b,k}, its file (for messages), and the round state, which is empty in round 1.

    `history` and `losses` are as in `Task`.
    """

    path: Path
    weights: Weights
    state: Tensors
    history: Sequence[Tensors] = ()
    losses: Sequence[float] = ()


def train_participant(
    settings: Recipe,
    participant: Participant,
    start: Start,
    info: dict[str, Any],
    lesson: Lesson | None = None,
) -> Generator[None, None, tuple[Weights, Metadata]]:
    """Train a client, after the `lesson` if there is one; return its update's tensors and metadata.

    Yields after each step, so that other clients may take theirs. The update holds the trained
    weights as ``model/NAME``, what the local trainer sends with them as ``payload/NAME``, and what
    it (with a model of the client's own) and compression leave with the client as ``kept/NAME`` and
    ``residual/NAME``; personal parts among the weights are not sent, either. If training
    diverges and `on_divergence` is drop, it holds no tensors, and its metadata has ``diverged_at``.

    Raises
    ------
    FedstageError
        If training diverges and `on_divergence` is stop; the message names client, round and step.
    """
    client, numerics = settings.client, settings.numerics
    round_, number = participant.round, participant.client
    samples, labels, device = participant.samples, participant.labels, participant.labels.device
    classes = int(info["classes"])
    loss = client_loss(client.loss, classes, device)
    model = new_model(model_of(settings, participant.group), info, device, numerics)
    begun = start.weights | dict(own_parts(start.state, number))
    fill_model(model, begun, start.path)
    personal = kept_by_clients(settings, model)
    trainer, state = local_trainer(settings.local), variates_of(start.state, number)
    on_device = {name: value.to(device) for name, value in state.items()}
    key = (settings.seed, "local_training", round_, number)
    seed_globals(*key, "global")
    trainer.prepare(model, on_device, number)
    targets = labels if lesson is None else lesson(model, samples, labels)
    # A graph would repeat the first draws: it is refused if the global generator has been used.
    own = torch.default_generator if numerics.cuda_graphs else torch_generator(*key, "objective")
    past = (start.history, start.losses)
    task = Task(model, loss, numerics, on_device, number, labels, classes, own, *past)
    objective = trainer.objective(task)

    def trained(
        batches: list[torch.Tensor], term: GradientTerm | None, *purpose: str
    ) -> Generator[None, None, Outcome]:
        return training(
            model,
            samples,
            targets,
            batches,
            client,
            loss,
            info,
            torch_generator(*key, *purpose, "augmentation"),
            numerics,
            rate=round_factor(client, round_),
            objective=None if objective is None else scalar(objective, settings.local, "local"),
            gradient_term=term,
            noisy=_noise(settings, participant),
            whose=f"client {number}, round {round_}: ",
        )

    def term() -> GradientTerm | None:
        return trainer.gradient_term(_anchors(model), on_device, number)

    batches, own_model, outcomes = _batches(settings, participant), Weights(), list[Outcome]()
    if settings.local.has_own_model:
        near = trainer.own_term(_anchors(model))
        fill_model(model, dict(part(start.state, f"client/{number}/")) or begun, start.path)
        outcomes.append((yield from trained(batches, near, "own")))
        own_model = state_of(model)
        fill_model(model, begun, start.path)
    if settings.personal and settings.personal.epochs:
        alone = client.model_copy(update={"epochs": settings.personal.epochs, "steps": None})
        drawn = client_batches(len(samples), alone, torch_generator(*key, "personal", "batches"))
        for name, parameter in model.named_parameters():
            parameter.requires_grad_(name in personal)
        outcomes.append((yield from trained(drawn, term(), "personal")))
        for name, parameter in model.named_parameters():
            parameter.requires_grad_(name not in personal)
    outcomes.append((yield from trained(batches, term())))
    # The first that diverged, or else the training of what is sent.
    outcome = next((one for one in outcomes if one.diverged_at is not None), outcomes[-1])
    if outcome.diverged_at is not None:
        if settings.on_divergence == "stop":
            raise FedstageError(
                f"client {number}, round {round_}: the loss is not finite at step "
                f"{outcome.diverged_at}; lower client.learning_rate = {client.learning_rate}, "
                "or set client.clip_norm or on_divergence: drop"
            )
        return {}, participant.metadata | {"diverged_at": outcome.diverged_at}
    end = without(state_of(model), merged_names(model))
    before, after = (parameters_of(model, one, personal) for one in (start.weights, end))
    seen = partial(features_of, model, samples, info, numerics)
    result = Trained(before, after, outcome, client, labels.cpu(), seen)
    payload, kept = (of(result, state, number) for of in (trainer.payload, trainer.kept))
    residual: Weights = {}
    if settings.compression.name != "none":
        left = residual_of(start.state, number)
        after, residual = transmit(settings.compression, before, after, left)
    parts = {
        "model": together(end, after),
        "payload": payload,
        "residual": residual,
        "kept": kept | own_model,
    }
    tensors = {f"{kind}/{n}": value for kind, part in parts.items() for n, value in part.items()}
    return tensors, participant.metadata | {"steps": outcome.steps, "loss": outcome.loss}


def _anchors(model: nn.Module) -> Weights:
    """Return a copy of the parameters that are trained."""
    parameters = model.named_parameters()
    return {name: value.detach().clone() for name, value in parameters if value.requires_grad}


def _batches(settings: Recipe, participant: Participant) -> list[torch.Tensor]:
    """Return a participant's batches; ``continued`` ones share one key over all rounds."""
    client, samples = settings.client, len(participant.samples)
    key, skipped = [participant.round, participant.client], 0
    if client.batches == "continued":
        assert client.steps is not None, "checked by Client"
        key, skipped = [participant.client], (participant.round - 1) * client.steps
    generator = torch_generator(settings.seed, "local_training", *key, "batches")
    private = example_privacy(settings) is not None
    return client_batches(samples, client, generator, skipped, private=private)


def _noise(settings: Recipe, participant: Participant) -> NoisyBatches | None:
    """Return the noise that hides a participant's samples in its gradients, if any does."""
    how = example_privacy(settings)
    if how is None:
        return None
    place = ("local_training", participant.round, participant.client, "noise")
    generator = torch_generator(settings.seed, own_key(settings), *place)
    return noisy_batches(how, settings.client.batch_size, len(participant.samples), generator)
