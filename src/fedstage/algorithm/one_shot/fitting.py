"""Phase 2 of a one-shot method (FENS, Algorithm 2): from cached logits to lambda."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from fedstage.algorithm.one_shot.aggregator_training import Samples, Task, Trained, trainer
from fedstage.algorithm.one_shot.aggregators import Knowledge, combination, rule
from fedstage.algorithm.one_shot.client_models import of_rule
from fedstage.data.samples import read_labelled, read_owned
from fedstage.errors import FedstageError
from fedstage.models.heads import PROTOTYPES
from fedstage.protocol.digests import own_key
from fedstage.protocol.one_shot import members
from fedstage.protocol.privacy import example_privacy
from fedstage.randomness import torch_generator
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.storage.tensors import load_tensors
from fedstage.training.images import normalise


def fit(
    settings: OneShotRecipe,
    clients: Sequence[int],
    known: Knowledge,
    samples: Mapping[int, Samples],
) -> Trained:
    """Return the aggregator of `clients`, computed from `known` and trained if it is trainable."""
    generator = torch_generator(settings.seed, "aggregator", "initial")
    start = rule(settings.aggregator).parameters(settings.aggregator, known, generator)
    training = settings.aggregator_training
    if training is None:
        return Trained(start, [])
    device = next(iter(samples.values())).logits.device
    placed = {name: value.to(device) for name, value in start.items()}
    how = (clients, own_key(settings), example_privacy(settings))
    task = Task(combination(settings.aggregator), placed, samples, settings.seed, *how)
    return trainer(training).train(training, task)


def knowledge(
    settings: OneShotRecipe,
    clients: Sequence[int],
    counts: Mapping[int, Mapping[int, int]],
    info: Mapping[str, Any],
    samples: Mapping[int, Samples],
    models: Sequence[Path],
) -> Knowledge:
    """Return the label counts of the members, `clients`, and the rule's other initial inputs.

    These are the members' votes if the rule votes, and the prototypes of `models` if it reads them.
    """
    table = [
        [counts.get(client, {}).get(label, 0) for label in range(info["classes"])]
        for client in clients
    ]
    votes = None
    if settings.aggregator.name == "voting":
        votes = torch.stack([count_votes(own.logits, own.labels) for own in samples.values()]).sum(
            0
        )
    prototypes = None
    if settings.aggregator.name == "fused_features":
        prototypes = torch.stack([load_tensors(path)[0][PROTOTYPES] for path in models])
    return Knowledge(torch.tensor(table), tuple(info["shape"]), votes, prototypes)


def count_votes(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return the votes int64 [M, C, C], votes by truths, from logits [M, n, C] and labels [n]."""
    members, _, classes = logits.shape
    cells = logits.argmax(2) * classes + labels
    offsets = torch.arange(members, device=logits.device)[:, None] * classes**2
    counts = torch.bincount((cells + offsets).flatten(), minlength=members * classes**2)
    return counts.reshape(members, classes, classes).cpu()


def read_role(
    settings: OneShotRecipe,
    role: str,
    logits: Sequence[Path],
    data: Path,
    clients: Path,
    info: Mapping[str, Any],
    device: torch.device,
) -> dict[int, Samples]:
    """Read the samples of a role by member; FedstageError if no member has any."""
    stacked = torch.stack([load_tensors(path)[0]["logits"] for path in logits]).to(device)
    numbers, owners = read_owned(clients, role)
    images, labels = read_labelled(data, numbers, device)
    pixels = normalise(images, info) if settings.aggregator.sees_images else None
    every = Samples(of_rule(settings.aggregator, stacked, info), labels, pixels)
    rows = {client: (owners == client).nonzero().flatten() for client in members(settings)}
    samples = {client: every.at(index.to(device)) for client, index in rows.items() if len(index)}
    if not samples:
        raise FedstageError(
            f"{clients}: no sample of role {role!r} for any client that is not in forget = "
            f"{list(settings.forget)}"
        )
    return samples
