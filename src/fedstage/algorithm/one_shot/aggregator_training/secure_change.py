"""The server's change in a round, from masked changes: no participant reveals its own change."""

from collections.abc import Mapping

from fedstage.algorithm.one_shot.aggregator_training import diverged
from fedstage.algorithm.secure.protocol import SecureRound, Summed, secure_sum
from fedstage.algorithm.secure.vectors import Integers, check_samples, decode, encode
from fedstage.randomness import numpy_generator
from fedstage.settings.aggregation import SecureAggregation
from fedstage.settings.aggregators import FederatedRounds
from fedstage.weights import Weights

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
