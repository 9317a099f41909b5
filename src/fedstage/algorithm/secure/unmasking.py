"""Unmasking: which shares clients reveal, and the sum that the server computes with them."""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import numpy as np

from fedstage.algorithm.secure.envelopes import Shares
from fedstage.algorithm.secure.masks import add_keystream, add_pairwise_masks
from fedstage.algorithm.secure.shares import combine
from fedstage.algorithm.secure.vectors import Integers
from fedstage.errors import FedstageError


class Revealed(NamedTuple):
    """The shares that one client reveals, by the client whose secret they belong to."""

    seeds: dict[int, bytes]  # of clients whose masked vectors arrived
    mask_keys: dict[int, bytes]  # of clients that sent shares and then dropped out

    @property
    def named(self) -> dict[str, dict[int, bytes]]:
        """Both kinds by their names."""
        return self._asdict()


def reveal(held: Mapping[int, Shares], survivors: Collection[int]) -> Revealed:
    """Return the shares that a client reveals: one share of each other client.

    Parameters
    ----------
    held : mapping of int to Shares
        The shares that the client holds, by the client that sent them.
    survivors : collection of int
        The clients whose masked vectors arrived.
    """
    seeds = {v: shares.seed for v, shares in held.items() if v in survivors}
    mask_keys = {v: shares.mask_key for v, shares in held.items() if v not in survivors}
    return Revealed(seeds, mask_keys)


def unmasked_sum(
    vectors: Mapping[int, Integers],
    public: Mapping[int, bytes],
    revealed: Mapping[int, Revealed],
    threshold: int,
) -> Integers:
    """Return the sum mod 2^32, uint32 [P], of the values behind masked vectors.

    Parameters
    ----------
    vectors : mapping of int to array
        y_u, uint32 [P], of the clients whose masked vectors arrived.
    public : mapping of int to bytes
        Their public mask keys, by client.
    revealed : mapping of int to Revealed
        What each client that answered the last step has revealed; at least `threshold` clients.
    """
    total = np.zeros(len(next(iter(vectors.values()))), dtype=np.uint32)
    survivors = {u: public[u] for u in vectors}
    for u, vector in vectors.items():
        seed = combine({v: of.seeds[u] for v, of in revealed.items()}, threshold)
        total += vector
        add_keystream(total, seed, sign=-1)
    gone = sorted({u for of in revealed.values() for u in of.mask_keys})
    for u in gone:
        private = combine({v: of.mask_keys[u] for v, of in revealed.items()}, threshold)
        # u's masks for its pairs with survivors, which cancel the masks that they added for u.
        add_pairwise_masks(total, u, private, survivors)
    return total


def check_answers(
    step: str, where: str, answered: int, needed: int, setting: str = "aggregation.secure"
) -> None:
    """Raise FedstageError if fewer participants than the threshold answered in a step.

    `where` is the round as named in messages, as returned by `place_of`.
    """
    if answered < needed:
        raise FedstageError(
            f"{where}: {answered} participants answered in the step {step!r} of secure "
            f"aggregation: needs {setting}.threshold = {needed}"
        )


def place_of(message: Mapping[str, Any]) -> str:
    """Return a description of the round and group in a message's metadata."""
    return f"round {message['round']}, group {message['group']}"
