"""Traffic: the bytes that a participant of a round sends and receives.

Tensors count, file headers do not; a compressed change counts as it is encoded.
"""

from fedstage.algorithm.exchange.compression import sent_bytes
from fedstage.algorithm.exchange.updates import Update
from fedstage.protocol.rounds import checkpoints, is_distilled
from fedstage.protocol.teaching import generates, students, teaching_of
from fedstage.settings.local_training import Compression
from fedstage.settings.recipes import Recipe
from fedstage.weights import Tensors, shapes_of


def bytes_up(compression: Compression, update: Update, parameters: Tensors) -> int:
    """Return the bytes of an update; 0 if it was dropped."""
    whole = payload_bytes(update.weights, update.payload)
    if compression.name == "none" or update.diverged:
        return whole
    return whole - payload_bytes(parameters) + sent_bytes(compression, parameters)


def bytes_down(
    compression: Compression, missed: int | None, model: Tensors, parameters: Tensors
) -> int:
    """Return the bytes of the model that a participant starts from.

    Where parameters are sent as changes, a participant gets one change for each of the `missed`
    rounds since its last one, or the whole model if that is smaller. In its first round (`missed`
    is None) it gets the whole model.
    """
    whole = payload_bytes(model)
    if compression.name == "none" or missed is None:
        return whole
    dense = payload_bytes(parameters)
    return whole - dense + min(dense, missed * sent_bytes(compression, parameters))


def payload_bytes(*groups: Tensors) -> int:
    """Return the bytes of all tensors, without reading them."""
    return sum(tensor.nbytes for group in groups for tensor in shapes_of(group).values())


COUNT = 4  # bytes of a count, int32, or of an accuracy, float32


def counts_sent(recipe: Recipe, round_: int, classes: int) -> int:
    """Return the bytes of the label counts that each participant of a round sends.

    Counts are sent where students learn from images generated with them, in this round or a later
    one whose teacher has its models. Tables of participants do not include these bytes, because
    recipes with and without students share the tables.
    """
    if not generates(recipe):
        return 0
    rounds = range(round_, round_ + checkpoints(teaching_of(recipe).ensemble))
    taught = any(is_distilled(recipe, t, group) for t in rounds for group in students(recipe))
    return COUNT * classes if taught else 0
