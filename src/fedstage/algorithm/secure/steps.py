"""The steps of a participant, and the sum that the server computes when all have been taken.

A participant may drop out in any step. It seals shares for the others, opens those that it is
given, and reveals some of them.
"""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import numpy as np

from fedstage.algorithm.secure.masks import add_keystream, add_pairwise_masks
from fedstage.algorithm.secure.shares import Address, Shares, combine, seal, split, unseal
from fedstage.algorithm.secure.vectors import Integers
from fedstage.errors import FedstageError
from fedstage.protocol.exchange import secure_of
from fedstage.randomness import fraction
from fedstage.settings.aggregation import Dropouts
from fedstage.settings.recipes import Recipe


class Secrets(NamedTuple):
    """A participant's secrets in a round, 32 bytes each."""

    channel: bytes  # the private key for encrypting shares
    mask: bytes  # the private key of its pairwise masks
    seed: bytes  # b_u, of its self mask


class Participant(NamedTuple):
    """A participant u of a round, in a group."""

    round: int
    group: int
    number: int

    def to(self, receiver: int) -> Address:
        """Return the address of a message to another participant."""
        return Address(self.round, self.group, self.number, receiver)


def sealed_shares(
    who: Participant,
    own: Secrets,
    channels: Mapping[int, bytes],
    threshold: int,
    keys: tuple[bytes, bytes],
) -> dict[int, bytes]:
    """Return shares of b_u and of the private mask key, encrypted, by receiver.

    Parameters
    ----------
    channels : mapping of int to bytes
        The public channel keys of all participants, including the sender's own.
    keys : pair of bytes
        Secrets from which the polynomials of b_u and of the mask key are drawn.
    """
    secrets = zip((own.seed, own.mask), keys, strict=True)
    parts = [split(secret, threshold, channels, key) for secret, key in secrets]
    return {
        receiver: seal(
            Shares(*(part[receiver] for part in parts)), who.to(receiver), own.channel, key
        )
        for receiver, key in channels.items()
    }


def opened_shares(
    who: Participant, own: bytes, channels: Mapping[int, bytes], sealed: Mapping[int, bytes]
) -> dict[int, Shares]:
    """Return the shares that a participant was given, by sender; `own` is its private channel key.

    Raises
    ------
    FedstageError
        If a message was altered in transit.
    """
    return {
        sender: unseal(message, who._replace(number=sender).to(who.number), own, channels[sender])
        for sender, message in sealed.items()
    }


#: The steps that a participant may miss, in their order, by the names of `Dropouts`.
STEPS = tuple(Dropouts.model_fields)


def stays(dropped: Dropouts, step: str, drawn: float) -> bool:
    """Whether a participant that drew a number in [0, 1) is still present in a step."""
    shares: list[float] = [getattr(dropped, name) for name in STEPS]
    return drawn >= sum(shares[: STEPS.index(step) + 1])


def still_there(recipe: Recipe, participant: Mapping[str, Any], step: str) -> bool:
    """Whether a participant, given by its messages' metadata, is still present in a step."""
    key = recipe.seed, "secure_aggregation", participant["round"], participant["client"], "dropout"
    return stays(secure_of(recipe).dropped, step, fraction(*key))


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
