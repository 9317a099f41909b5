"""Federated rounds (FENS, Algorithm 2, phase 2).

    client i    lambda_i <- lambda_t;   steps times   lambda_i <- lambda_i - eta_l g_i(lambda_i)
    server      Delta = sum_i p_i (lambda_i - lambda_t);   lambda_{t+1} by the server optimiser

All clients take part, with equal p_i, or p_i by their samples. With secure aggregation the server
gets only the sum. Batches are drawn without replacement until a client's samples are used up, and
continue across rounds. The loop in the paper's Algorithm 2 takes one step more than K; here it
takes K. With noise for privacy, a step's gradient is DP-SGD's, and its batch has every sample
at random.
"""

from collections.abc import Iterator
from dataclasses import replace

import torch

from fedstage.algorithm.aggregation.server_optimizers import server_step
from fedstage.algorithm.one_shot.aggregator_training import (
    Progress,
    Samples,
    Task,
    Trained,
    follow,
    gradient,
)
from fedstage.algorithm.one_shot.aggregator_training.secure_change import secure_change
from fedstage.algorithm.one_shot.aggregators import Combine
from fedstage.randomness import torch_generator
from fedstage.settings.aggregators import FederatedRounds
from fedstage.training.batches import (
    NoisyBatches,
    noisy_batches,
    poisson_batches,
    public_batches,
)
from fedstage.weights import Weights


def train(settings: FederatedRounds, task: Task) -> Trained:
    """Train for `settings.rounds` rounds."""
    messages: list[tuple[int, int]] = []
    trained = follow(_rounds(settings, task, messages), settings.learning_rate)
    if settings.secure is None:
        return trained
    both = zip(trained.rounds, messages, strict=True)
    return replace(trained, rounds=[replace(one, loss=None, messages=sent) for one, sent in both])


def _rounds(
    settings: FederatedRounds, task: Task, messages: list[tuple[int, int]]
) -> Iterator[Progress]:
    """Yield after each round; the bytes of secure aggregation are appended to `messages` before."""
    samples, clients = task.samples, sorted(task.samples)
    batches = {client: _batches(settings, task, client) for client in clients}
    noise = {client: _noise(settings, task, client) for client in clients}
    parameters = task.start
    state: Weights = {}
    for round_ in range(1, settings.rounds + 1):
        moved, losses = zip(
            *(
                local_steps(
                    settings,
                    task.combine,
                    parameters,
                    samples[client],
                    batches[client],
                    noise[client],
                )
                for client in clients
            ),
            strict=True,
        )
        sizes = [len(samples[client]) for client in clients]
        if settings.secure is None:
            shares = sizes if settings.weights == "samples" else [1] * len(sizes)
            change = _mean_change(parameters, moved, shares)
        else:
            ended = dict(zip(clients, zip(moved, sizes, strict=True), strict=True))
            key = (task.seed, task.own_key)
            change, sent = secure_change(settings, settings.secure, parameters, ended, round_, key)
            messages.append(sent)
        parameters, state = server_step(settings.server_optimizer, parameters, change, state)
        yield parameters, len(clients), torch.stack(losses).mean()


def local_steps(
    settings: FederatedRounds,
    combine: Combine,
    parameters: Weights,
    samples: Samples,
    batches: list[torch.Tensor],
    noise: NoisyBatches | None = None,
) -> tuple[Weights, torch.Tensor]:
    """Return a client's lambda after its steps, and their mean loss; used batches are removed."""
    losses = []
    for _ in range(settings.steps):
        loss, slopes = gradient(combine, parameters, samples.at(batches.pop(0)), noise)
        losses.append(loss)
        parameters = {
            name: value - settings.learning_rate * slopes[name]
            for name, value in parameters.items()
        }
    return parameters, torch.stack(losses).mean()


def _batches(settings: FederatedRounds, task: Task, client: int) -> list[torch.Tensor]:
    """Return as many batches as a client can need, with the next one first."""
    generator = torch_generator(task.seed, "aggregator", client, "batches")
    draw = public_batches if task.privacy is None else poisson_batches
    steps = settings.rounds * settings.steps
    return draw(len(task.samples[client]), settings.batch_size, steps, generator)


def _noise(settings: FederatedRounds, task: Task, client: int) -> NoisyBatches | None:
    """Return the noise that hides a client's samples in its gradients, if any does."""
    if task.privacy is None:
        return None
    generator = torch_generator(task.seed, task.own_key, "aggregator", client, "noise")
    return noisy_batches(task.privacy, settings.batch_size, len(task.samples[client]), generator)


def _mean_change(start: Weights, moved: tuple[Weights, ...], sizes: list[int]) -> Weights:
    """Return Delta, with p_i proportional to the sizes."""
    shares = torch.tensor(sizes, dtype=torch.float64) / sum(sizes)
    ended = {name: torch.stack([own[name] for own in moved]) for name in start}
    return {
        name: torch.tensordot(shares.to(value.device), (ended[name] - value).double(), dims=1)
        for name, value in start.items()
    }
