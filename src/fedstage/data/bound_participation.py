"""Participation of clients that are bound to architectures.

All assignments of different clients to the participants of a round that respect the bindings are
equally likely: this is the draw without bound clients, conditional on every binding being
respected. Clients bound to the same architecture therefore participate equally often, as each
participant of this architecture. Unbound clients participate equally often, too, and at least as
often as others: wherever a bound client participates without an unbound one, the two may be
exchanged.

The draw has three steps: how many participants of each architecture have unbound clients, with
probabilities in proportion to the number of ways left; which clients of either kind; and their
order.
"""

from collections import Counter
from functools import cache
from math import comb

import numpy as np
import numpy.typing as npt

from fedstage.errors import FedstageError
from fedstage.randomness import numpy_generator
from fedstage.settings.participants import Binding

#: Numbers of participants of an architecture, and of clients that are bound to it.
Demand = tuple[int, int]

_RESOLUTION = 2**53


def draw_bound(binding: Binding, seed: int, round_: int) -> npt.NDArray[np.int64]:
    """Draw the clients of a round, with the generator key of unbound participation.

    Raises
    ------
    FedstageError
        If there are not enough clients.
    """
    generator = numpy_generator(seed, "participation", round_)
    architectures = sorted(set(binding.participants))
    participants, clients = Counter(binding.participants), Counter(binding.clients)
    demands = tuple((participants[number], clients[number]) for number in architectures)
    shares = _unbound_shares(demands, clients[None], generator)
    unbound = generator.permutation(_positions(binding.clients, None))
    drawn = np.empty(len(binding.participants), dtype=np.int64)
    for number, share in zip(architectures, shares, strict=True):
        bound = generator.permutation(_positions(binding.clients, number))
        chosen = np.concatenate([bound[: participants[number] - share], unbound[:share]])
        unbound = unbound[share:]
        drawn[_positions(binding.participants, number)] = generator.permutation(chosen)
    return drawn


def _positions(numbers: tuple[int | None, ...], value: int | None) -> npt.NDArray[np.int64]:
    return np.array([i for i, number in enumerate(numbers) if number == value], dtype=np.int64)


def _unbound_shares(
    demands: tuple[Demand, ...], unbound: int, generator: np.random.Generator
) -> list[int]:
    """Draw how many participants of each architecture have unbound clients."""
    if not ways(demands, unbound):
        raise FedstageError(
            f"binding: {unbound} clients are bound to no architecture: too few for participants "
            "that bound clients leave open"
        )
    shares: list[int] = []
    for number, demand in enumerate(demands):
        left = unbound - sum(shares)
        weights = _ways_by_share(demand, demands[number + 1 :], left)
        shares.append(_draw_position(weights, generator))
    return shares


def _ways_by_share(demand: Demand, others: tuple[Demand, ...], unbound: int) -> list[int]:
    """Return the numbers of ways in which 0, 1, ... unbound clients meet a `demand`."""
    participants, bound = demand
    return [
        comb(unbound, share) * comb(bound, participants - share) * ways(others, unbound - share)
        for share in range(min(participants, unbound) + 1)
    ]


def _draw_position(weights: list[int], generator: np.random.Generator) -> int:
    """Draw a position with probability in proportion to its weight, exact to 53 bits."""
    point = int(generator.integers(_RESOLUTION)) * sum(weights) // _RESOLUTION
    for position, weight in enumerate(weights):
        if point < weight:
            return position
        point -= weight
    raise AssertionError("the point is below the sum of the weights")


@cache
def ways(demands: tuple[Demand, ...], unbound: int) -> int:
    """Return the number of ways to choose the clients of all architectures' participants.

    The clients of an architecture count as a set: every set has the same number of orders.
    """
    return sum(_ways_by_share(demands[0], demands[1:], unbound)) if demands else 1
