"""The participants of a round in which an aggregator is trained."""

from fedstage.randomness import numpy_generator
from fedstage.settings.aggregators import FederatedRounds, MirrorDescent


def participants(
    settings: FederatedRounds | MirrorDescent, clients: list[int], round_: int, seed: int
) -> list[int]:
    """Return the participants of a round, in order; all clients if there are too few."""
    number = min(settings.participants or len(clients), len(clients))
    generator = numpy_generator(seed, "aggregator", round_, "participants")
    return sorted(generator.choice(clients, number, replace=False).tolist())
