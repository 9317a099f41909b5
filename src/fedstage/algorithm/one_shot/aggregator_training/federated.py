"""Federated rounds (FENS, Algorithm 2, phase 2).

    client i    lambda_i <- lambda_t;   steps times   lambda_i <- lambda_i - eta_l g_i(lambda_i)
    server      Delta = sum_i p_i (lambda_i - lambda_t);   lambda_{t+1} by the server optimiser

with p_i equal, or by the clients' samples. Batches are drawn without putting back until a client's
samples are used up, and go on from round to round. The loop of the paper's Algorithm 2 takes one
step more than the K that it names; here it is K.
"""

from collections.abc import Mapping

import torch

from fedstage.algorithm.aggregation.server_optimizers import server_step
from fedstage.algorithm.one_shot.aggregator_training import (
    Round,
    Samples,
    Trained,
    check_finite,
    gradient,
)
from fedstage.algorithm.one_shot.aggregator_training.stopping import Watch
from fedstage.algorithm.one_shot.aggregators import Combine
from fedstage.randomness import numpy_generator, torch_generator
from fedstage.settings.aggregators import FederatedRounds
from fedstage.storage.tensors import Weights
from fedstage.training.batches import public_batches


def train(
    settings: FederatedRounds,
    combine: Combine,
    parameters: Weights,
    samples: Mapping[int, Samples],
    validation: Samples | None,
    seed: int,
) -> Trained:
    """Train for `settings.rounds` rounds, or until validation says that it is enough."""
    batches = {
        client: _batches(settings, len(own), client, seed) for client, own in samples.items()
    }
    watch = Watch(settings.early_stopping, combine, validation, settings.rounds)
    state: Weights = {}
    losses, told = [], []
    for round in range(1, settings.rounds + 1):
        chosen = participants(settings, sorted(samples), round, seed)
        moved = [
            local_steps(settings, combine, parameters, samples[client], batches[client])
            for client in chosen
        ]
        change = _mean_change(settings, parameters, moved, [len(samples[c]) for c in chosen])
        parameters, state = server_step(settings.server_optimizer, parameters, change, state)
        losses.append(torch.stack([loss for _, loss in moved]).mean())
        told.append((round, len(chosen), watch.measure(round, parameters)))
        if watch.ends(round):
            break
    return _trained(settings, watch, torch.stack(losses).cpu(), told)


def participants(settings: FederatedRounds, clients: list[int], round: int, seed: int) -> list[int]:
    """Return who takes part in a round, in order; fewer than asked for if fewer have samples."""
    wanted = min(settings.participants or len(clients), len(clients))
    generator = numpy_generator(seed, "aggregator", round, "participants")
    return sorted(generator.choice(clients, wanted, replace=False).tolist())


def local_steps(
    settings: FederatedRounds,
    combine: Combine,
    parameters: Weights,
    samples: Samples,
    batches: list[torch.Tensor],
) -> tuple[Weights, torch.Tensor]:
    """Return a client's lambda after its steps, and their mean loss; batches are used up."""
    losses = []
    for _ in range(settings.steps):
        loss, slopes = gradient(combine, parameters, samples.at(batches.pop(0)))
        losses.append(loss)
        parameters = {
            name: value - settings.learning_rate * slopes[name]
            for name, value in parameters.items()
        }
    return parameters, torch.stack(losses).mean()


def _batches(settings: FederatedRounds, samples: int, client: int, seed: int) -> list[torch.Tensor]:
    """Return as many batches as a client can need, the next one first."""
    generator = torch_generator(seed, "aggregator", client, "batches")
    steps = settings.rounds * settings.steps
    return public_batches(samples, settings.batch_size, steps, generator)


def _mean_change(
    settings: FederatedRounds,
    start: Weights,
    moved: list[tuple[Weights, torch.Tensor]],
    sizes: list[int],
) -> Weights:
    """Return Delta."""
    weights = sizes if settings.weights == "samples" else [1] * len(sizes)
    shares = torch.tensor(weights, dtype=torch.float64) / sum(weights)
    ended = {name: torch.stack([own[name] for own, _ in moved]) for name in start}
    return {
        name: torch.tensordot(shares.to(value.device), (ended[name] - value).double(), dims=1)
        for name, value in start.items()
    }


def _trained(
    settings: FederatedRounds,
    watch: Watch,
    losses: torch.Tensor,
    told: list[tuple[int, int, float | None]],
) -> Trained:
    check_finite(losses, "round", settings.learning_rate)
    rounds = [
        Round(number, present, loss, accuracy)
        for (number, present, accuracy), loss in zip(told, losses.tolist(), strict=True)
    ]
    return Trained(watch.parameters, watch.round, rounds)
