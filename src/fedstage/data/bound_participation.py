"""Participation of clients that are bound to architectures.

Every way to give each slot a client that may have it, no client two, is as likely as any other. It
is the draw without bound clients, on condition that everybody fits. So clients bound to the same
architecture take part equally often, in each of its slots. Clients that are bound to none do so
among themselves, and never less often than others: wherever one who is bound takes part without
such a client, the two may change places.

It is drawn in three steps: how many slots of each architecture go to unbound clients, with
probabilities in proportion to the number of ways that are then left; which clients of either kind;
and which of these is which slot.
"""

from collections import Counter
from functools import cache
from math import comb

import numpy as np
import numpy.typing as npt

from fedstage.errors import FedstageError
from fedstage.randomness import numpy_generator
from fedstage.settings.binding import Binding

#: Slots of an architecture, and clients that are bound to it.
Demand = tuple[int, int]

_RESOLUTION = 2**53


def draw_bound(binding: Binding, seed: int, round: int) -> npt.NDArray[np.int64]:
    """Draw the participants of a round.

    The generator's key is (seed, round), as that of participants who are not bound.

    Returns
    -------
    array of shape [participants]
        The client of each slot.

    Raises
    ------
    FedstageError
        If there are not enough clients.
    """
    generator = numpy_generator(seed, "participation", round)
    architectures = sorted(set(binding.slots))
    slots, clients = Counter(binding.slots), Counter(binding.clients)
    demands = tuple((slots[number], clients[number]) for number in architectures)
    shares = _unbound_shares(demands, clients[None], generator)
    unbound = generator.permutation(_of(binding.clients, None))
    drawn = np.empty(len(binding.slots), dtype=np.int64)
    for number, share in zip(architectures, shares, strict=True):
        bound = generator.permutation(_of(binding.clients, number))[: slots[number] - share]
        chosen, unbound = np.concatenate([bound, unbound[:share]]), unbound[share:]
        drawn[_of(binding.slots, number)] = generator.permutation(chosen)
    return drawn


def _of(numbers: tuple[int | None, ...], wanted: int | None) -> npt.NDArray[np.int64]:
    """Return the positions of a number."""
    return np.array([i for i, number in enumerate(numbers) if number == wanted], dtype=np.int64)


def _unbound_shares(
    demands: tuple[Demand, ...], unbound: int, generator: np.random.Generator
) -> list[int]:
    """Draw how many slots of each architecture go to unbound clients."""
    if not ways(demands, unbound):
        raise FedstageError(
            f"binding: {unbound} clients are bound to no architecture: too few for the slots that "
            "those who are bound leave open"
        )
    shares: list[int] = []
    for number, (slots, bound) in enumerate(demands):
        left, others = unbound - sum(shares), demands[number + 1 :]
        weights = [
            comb(left, share) * comb(bound, slots - share) * ways(others, left - share)
            for share in range(min(slots, left) + 1)
        ]
        shares.append(_one_of(weights, generator))
    return shares


def _one_of(weights: list[int], generator: np.random.Generator) -> int:
    """Draw a position with probability in proportion to its weight, exact to 53 bits."""
    point = int(generator.integers(_RESOLUTION)) * sum(weights) // _RESOLUTION
    for position, weight in enumerate(weights):
        if point < weight:
            return position
        point -= weight
    raise AssertionError("the point is below the sum of the weights")


@cache
def ways(demands: tuple[Demand, ...], unbound: int) -> int:
    """Return in how many ways the clients of all architectures' slots can be chosen.

    Those of an architecture count as a set: in how many orders it fills its slots is the same for
    every set.
    """
    if not demands:
        return 1
    (slots, bound), *others = demands
    return sum(
        comb(unbound, share) * comb(bound, slots - share) * ways(tuple(others), unbound - share)
        for share in range(min(slots, unbound) + 1)
    )
