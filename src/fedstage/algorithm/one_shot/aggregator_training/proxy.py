"""A server that trains the aggregator alone, on a small labelled set of its own.

No client takes part, so that nothing travels but the models. The set is `data.server_validation`:
training samples of no client.
"""

from collections.abc import Mapping

import torch
from torch import nn

from fedstage.algorithm.one_shot.aggregator_training import (
    Round,
    Samples,
    Trained,
    check_finite,
    gradient,
)
from fedstage.algorithm.one_shot.aggregator_training.stopping import Watch
from fedstage.algorithm.one_shot.aggregators import Combine
from fedstage.randomness import torch_generator
from fedstage.settings.aggregators import ProxySet
from fedstage.settings.optimisation import Optimiser
from fedstage.storage.tensors import Weights
from fedstage.training.batches import public_batches
from fedstage.training.optimisers import optimiser_step, step_sizes


def train(
    settings: ProxySet,
    combine: Combine,
    parameters: Weights,
    samples: Mapping[int, Samples],
    validation: Samples | None,
    seed: int,
) -> Trained:
    """Train for `settings.steps` steps, or until validation says that it is enough."""
    (own,) = samples.values()
    moving = {name: nn.Parameter(value.clone()) for name, value in parameters.items()}
    move = optimiser_step(list(moving.values()), _optimiser(settings))
    rates = [settings.learning_rate] * settings.steps
    sizes = step_sizes(_optimiser(settings), rates, like=next(iter(moving.values())))
    watch = Watch(settings.early_stopping, combine, validation, settings.steps)
    generator = torch_generator(seed, "aggregator", "server", "batches")
    losses, told = [], []
    batches = public_batches(len(own), settings.batch_size, settings.steps, generator)
    for step, batch in enumerate(batches, start=1):
        loss, slopes = gradient(combine, dict(moving), own.at(batch))
        for name, parameter in moving.items():
            parameter.grad = slopes[name]
        move(sizes[step - 1])
        losses.append(loss)
        told.append(watch.measure(step, _copied(moving)))
        if watch.ends(step):
            break
    values = torch.stack(losses).cpu()
    check_finite(values, "step", settings.learning_rate)
    rounds = [
        Round(number, 0, loss, accuracy)
        for number, (loss, accuracy) in enumerate(zip(values.tolist(), told, strict=True), start=1)
    ]
    return Trained(watch.parameters, watch.round, rounds)


def _optimiser(settings: ProxySet) -> Optimiser:
    return Optimiser(
        optimiser=settings.optimiser,
        learning_rate=settings.learning_rate,
        batch_size=settings.batch_size,
    )


def _copied(moving: Mapping[str, nn.Parameter]) -> Weights:
    return {name: value.detach().clone() for name, value in moving.items()}
