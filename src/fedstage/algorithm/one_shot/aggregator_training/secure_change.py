"""The server's change in a round, from masked changes: no participant reveals its own change.

A round of all steps is in memory, since rounds are too short and too many to be jobs. Stages take
the same steps. Each party sees only what is passed to it: the server's sum is computed by
`unmasked_sum` from public keys, masked vectors and revealed shares.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from fedstage.algorithm.one_shot.aggregator_training import diverged
from fedstage.algorithm.secure.masks import masked, public_key
from fedstage.algorithm.secure.messages import Answered
from fedstage.algorithm.secure.steps import (
    Participant,
    Revealed,
    Secrets,
    check_answers,
    opened_shares,
    reveal,
    sealed_shares,
    stays,
    unmasked_sum,
)
from fedstage.algorithm.secure.vectors import Integers, check_samples, decode, encode
from fedstage.randomness import Key, fraction, numpy_generator, secret
from fedstage.settings.aggregation import SecureAggregation
from fedstage.settings.aggregators import FederatedRounds
from fedstage.weights import Weights


class SecureRound(NamedTuple):
    """A round in which clients mask vectors.

    Attributes
    ----------
    key : tuple
        Key from which, together with the round, all secrets and dropouts are drawn.
    what : str
        What is trained, as named in messages.
    setting : str
        The setting behind `settings`, as named in messages.
    """

    settings: SecureAggregation
    key: tuple[Key, ...]
    round: int
    what: str
    setting: str

    def there(self, clients: Collection[int], step: str) -> list[int]:
        """Return the clients that have not dropped out before a step."""
        dropped = self.settings.dropped
        drawn = {u: fraction(*self.key, self.round, u, "dropout") for u in clients}
        return [u for u in clients if stays(dropped, step, drawn[u])]

    def check(self, step: str, clients: Collection[int]) -> None:
        """Raise FedstageError if fewer clients than the threshold answered in a step."""
        where, needed = f"{self.what}, round {self.round}", self.settings.threshold
        check_answers(step, where, len(clients), needed, self.setting)


class Summed(NamedTuple):
    """The sum of a round, uint32 [P], and who answered which step."""

    total: Integers
    answered: Answered


def secure_sum(of: SecureRound, vectors: Mapping[int, Integers]) -> Summed:
    """Return the sum of clients' vectors, uint32 [P] each, computed by the steps of the protocol.

    Raises
    ------
    FedstageError
        If fewer clients than the threshold answer a step.
    """
    own = {u: _secrets(of, u) for u in vectors}
    channels = {u: public_key(secrets.channel) for u, secrets in own.items()}
    public = {u: public_key(secrets.mask) for u, secrets in own.items()}
    of.check("advertise", own)
    shared = of.there(own, "share")
    messages = {u: _shared(of, u, own[u], channels) for u in shared}
    of.check("share", shared)
    sent = of.there(shared, "masked_input")
    with_shares = {u: public[u] for u in shared}
    arrived = {u: masked(vectors[u], u, own[u].seed, own[u].mask, with_shares) for u in sent}
    of.check("masked input", sent)
    last = of.there(sent, "unmask")
    revealed = {u: _revealed(of, u, own[u], channels, messages, sent) for u in last}
    of.check("unmask", last)
    total = unmasked_sum(arrived, public, revealed, of.settings.threshold)
    return Summed(total, Answered(list(own), shared, sent, last))


def _secrets(of: SecureRound, client: int) -> Secrets:
    names = Secrets._fields
    return Secrets(*(secret(*of.key, of.round, client, "own", name) for name in names))


def _shared(
    of: SecureRound, client: int, own: Secrets, channels: Mapping[int, bytes]
) -> dict[int, bytes]:
    seed, mask = (secret(*of.key, of.round, client, "share", name) for name in ("seed", "mask"))
    who = Participant(of.round, 0, client)
    return sealed_shares(who, own, channels, of.settings.threshold, (seed, mask))


def _revealed(
    of: SecureRound,
    client: int,
    own: Secrets,
    channels: Mapping[int, bytes],
    messages: Mapping[int, Mapping[int, bytes]],
    survivors: Collection[int],
) -> Revealed:
    sealed = {sender: message[client] for sender, message in messages.items()}
    who = Participant(of.round, 0, client)
    return reveal(opened_shares(who, own.channel, channels, sealed), survivors)


_SETTING = "aggregator_training.secure"


def secure_change(
    settings: FederatedRounds,
    secure: SecureAggregation,
    start: Weights,
    ended: Mapping[int, tuple[Weights, int]],
    round_: int,
    key: tuple[int, str],
) -> tuple[Weights, tuple[int, int]]:
    """Return Delta in float64, and the mean bytes that a participant sends and receives.

    These bytes are in addition to the aggregator that it receives.

    Parameters
    ----------
    start : dict
        lambda_t.
    ended : mapping of int to pairs
        By participant, lambda_i and the number of samples, which the server does not get.
    key : tuple
        The seed, and the recipe's own key for secrets (`protocol.digests.own_key`).

    Raises
    ------
    FedstageError
        If training diverges, a client has more samples than the bound, or too few clients answer.
    """

    def vector(client: int) -> Integers:
        moved, samples = ended[client]
        check_samples(secure, samples, client, _SETTING)
        change = {name: moved[name].double() - value.double() for name, value in start.items()}
        if not all(bool(part.isfinite().all()) for part in change.values()):
            raise diverged(settings.learning_rate, round_)
        generator = numpy_generator(key[0], "aggregator", round_, client, "rounding")
        return encode(secure, settings.weights, change, {}, samples, generator)

    vectors = {client: vector(client) for client in ended}
    of = SecureRound(secure, (*key, "aggregator"), round_, "aggregator", _SETTING)
    summed = secure_sum(of, vectors)
    arrived = len(summed.answered.sent)
    mean = decode(secure, settings.weights, summed.total, arrived, start, {})
    change = {name: value.to(start[name].device) for name, value in mean.change.items()}
    return change, _messages(summed, 4 * len(summed.total))


def _messages(summed: Summed, vector: int) -> tuple[int, int]:
    clients, answered = summed.answered.advertised, summed.answered
    up = sum(answered.bytes_up(client, vector) for client in clients)
    down = sum(answered.bytes_down(client) for client in clients)
    return round(up / len(clients)), round(down / len(clients))
