"""The steps of a participant: whether it is still there, and the shares that it seals and opens."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from fedstage.algorithm.secure.envelopes import Address, Shares, seal, unseal
from fedstage.algorithm.secure.shares import split
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
