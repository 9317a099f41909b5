"""Shards: a few contiguous pieces of the samples, sorted by class, for every client."""

import numpy as np
from numpy.random import Generator

from fedstage.data.partitions import Indices, Owners
from fedstage.errors import FedstageError
from fedstage.settings.partitions import Shards


def assign(
    settings: Shards, labels: Indices, clients: int, generator: Generator, natural: Owners
) -> list[Indices]:
    """Deal out shards at random, `classes_per_client` to each client.

    McMahan et al. 2017, section 3. Sizes of shards differ by at most 1. A shard can straddle two
    classes, so a client can have more classes than shards.

    Raises
    ------
    FedstageError
        If a client is to have more classes than there are, or there are more shards than samples.
    """
    per_client, classes = settings.classes_per_client, len(np.unique(labels))
    if per_client > classes:
        most = f"at most {classes}, the classes of the training samples"
        raise FedstageError(f"partition.classes_per_client = {per_client}: {most}")
    if (shards := clients * per_client) > len(labels):
        most = f"{clients} clients need {shards} shards, at most the {len(labels)} training samples"
        raise FedstageError(f"partition.classes_per_client = {per_client}: {most}")
    shuffled = generator.permutation(len(labels))
    by_class = shuffled[np.argsort(labels[shuffled], kind="stable")]
    pieces = np.array_split(by_class, clients * per_client)
    hands = generator.permutation(len(pieces)).reshape(clients, per_client)
    return [np.concatenate([pieces[piece] for piece in hand]) for hand in hands]
