"""FedBoost (Hamer, Mohri and Suresh 2020): ensemble weights, learnt with few members per round.

    client i    members k of S_i, each with probability g_k;   a~_k = a_k / g_k for k in S_i, else 0
                L_i = -mean log sum_k a~_k p_k(y | x),   over all of its samples
    server      a_k <- a_k exp(-eta d_k) / Z,   d = sum_i q_i dL_i / da

with q_i by the clients' samples. a~ is unbiased; the derivatives, since they are of a logarithm,
are not, and are large where all members in S_i have little weight. With all members in every S_i
this is exponentiated gradient. The paper draws members independently, so that their number varies
and may be 0; here it is fixed, and they are drawn systematically, with the same g. The paper leaves
open how g follows from a. Here it is equal, or proportional to a but no less than a tenth of the
equal value, since each member with a weight above 0 must have a chance. The paper's agnostic loss,
over the worst mixture of clients, is not implemented.
"""

from collections.abc import Iterator
from dataclasses import replace
from math import exp

import torch

from fedstage.algorithm.one_shot.aggregator_training import (
    Progress,
    Sampled,
    Samples,
    Task,
    Trained,
    follow,
)
from fedstage.randomness import torch_generator
from fedstage.settings.aggregators import MirrorDescent

LEAST = 0.1  # the smallest chance of any member, as a share of an equal chance
LOGARITHMS = (-700.0, 700.0)
HALVINGS = 64  # of the logarithms' interval, to the precision of float64


def train(settings: MirrorDescent, task: Task) -> Trained:
    """Train for `settings.rounds` rounds."""
    sampled: list[Sampled] = []
    trained = follow(_rounds(settings, task, sampled), settings.learning_rate)
    rounds = [
        replace(round_, sampled=travelled)
        for round_, travelled in zip(trained.rounds, sampled, strict=True)
    ]
    return replace(trained, rounds=rounds)


def _rounds(settings: MirrorDescent, task: Task, sampled: list[Sampled]) -> Iterator[Progress]:
    """Yield after each round; what participants fetched is appended to `sampled` before."""
    clients = sorted(task.samples)
    held = {client: {client} for client in clients}
    start = task.start["weights"]
    log_weights = start.double().log()
    for round_ in range(1, settings.rounds + 1):
        chances = inclusion(settings, log_weights.exp().cpu())
        drawn = {
            client: draw(
                chances, torch_generator(task.seed, "aggregator", round_, client, "members")
            )
            for client in clients
        }
        sampled.append(_fetch(task, drawn, held))
        losses, slopes = zip(
            *(
                _slope(log_weights, chances, drawn[client], task.samples[client])
                for client in clients
            ),
            strict=True,
        )
        sizes = [len(task.samples[client]) for client in clients]
        shares = torch.tensor(sizes, dtype=torch.float64, device=start.device) / sum(sizes)
        moved = log_weights - settings.learning_rate * (shares @ torch.stack(slopes))
        log_weights = moved.log_softmax(0)
        after = {"weights": log_weights.exp().to(start.dtype)}
        yield after, len(clients), shares @ torch.stack(losses)


def inclusion(settings: MirrorDescent, weights: torch.Tensor) -> torch.Tensor:
    """Return g [M], float64, each at most 1, with the sum `settings.predictors`."""
    members = len(weights)
    count = settings.predictors or members
    equal = torch.full_like(weights, count / members)
    if settings.sampling == "uniform" or count == members:
        return equal
    lowest, highest = LOGARITHMS  # of c in g_k = min(1, max(c a_k, least))
    for _ in range(HALVINGS):
        middle = (lowest + highest) / 2
        chances = (weights * exp(middle)).clamp(LEAST * count / members, 1.0)
        lowest, highest = (middle, highest) if chances.sum() < count else (lowest, middle)
    return chances


def draw(chances: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return the positions that are drawn, each with its chance, by systematic sampling.

    The chances are laid end to end on a line in random order. Each whole number, shifted by one
    uniform number, draws the position on which it falls. As many are drawn as the chances sum to.
    """
    order = torch.randperm(len(chances), generator=generator)
    ends = chances[order].cumsum(0)
    ends[-1] = ends[-1].round()  # a whole number up to rounding
    offset = torch.rand((), dtype=torch.float64, generator=generator)
    passed = (ends.clamp(max=float(ends[-1])) - offset).ceil()
    before = torch.cat([passed.new_zeros(1), passed[:-1]])
    return order[passed > before].sort().values


def _slope(
    log_weights: torch.Tensor, chances: torch.Tensor, drawn: torch.Tensor, samples: Samples
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a client's loss and its derivatives by a [M], 0 for members that it lacks."""
    drawn = drawn.to(log_weights.device)
    labels = samples.labels[None, :, None].expand(len(drawn), -1, 1)
    log_likelihoods = samples.logits[drawn].double().log_softmax(2).gather(2, labels).squeeze(2)
    log_chances = chances.to(log_weights.device)[drawn].log()
    mixed = (log_likelihoods + (log_weights[drawn] - log_chances)[:, None]).logsumexp(0)
    slope = torch.zeros_like(log_weights)
    slope[drawn] = -(log_likelihoods - log_chances[:, None] - mixed).exp().mean(1)
    return -mixed.mean(), slope


def _fetch(task: Task, drawn: dict[int, torch.Tensor], held: dict[int, set[int]]) -> Sampled:
    """Return what participants fetch, and add it to `held`."""
    fetched: dict[int, int] = {}
    for client, positions in drawn.items():
        for position in positions.tolist():
            owner = task.members[position]
            if owner not in held[client]:
                held[client].add(owner)
                fetched[position] = fetched.get(position, 0) + 1
    return Sampled(fetched, sum(map(len, drawn.values())))
