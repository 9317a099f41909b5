"""Traffic: the bytes that a participant of a round sends and receives.

Tensors count, file headers do not; of a compressed change what it is encoded in.
"""

from fedstage.algorithm.aggregation.averages import payload_bytes
from fedstage.algorithm.exchange.compression import sent_bytes
from fedstage.algorithm.exchange.updates import Update
from fedstage.settings.local_training import Compression
from fedstage.storage.tensors import Weights


def bytes_up(how: Compression, update: Update, parameters: Weights) -> int:
    """Return the bytes of an update; none if it was dropped."""
    whole = payload_bytes(update.weights, update.payload)
    if how.name == "none" or update.diverged:
        return whole
    return whole - payload_bytes(parameters) + sent_bytes(how, parameters)


def bytes_down(how: Compression, missed: int | None, begun: Weights, parameters: Weights) -> int:
    """Return the bytes of the model that a participant starts from.

    Where the model is sent as changes, they are those of all rounds since the participant's last
    one, unless the whole model is smaller.

    Parameters
    ----------
    missed : int, optional
        How many rounds ago that was; None if there was none, and the whole model is sent.
    begun, parameters : dict
        The model, and the part of it that is compressed.
    """
    whole = payload_bytes(begun)
    if how.name == "none" or not how.downstream or missed is None:
        return whole
    dense = payload_bytes(parameters)
    return whole - dense + min(dense, missed * sent_bytes(how, parameters))
