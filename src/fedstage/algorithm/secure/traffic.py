"""The bytes that the steps of a round send, in addition to the global model."""

from collections.abc import Collection
from typing import NamedTuple

from fedstage.algorithm.secure.envelopes import MESSAGE_BYTES
from fedstage.algorithm.secure.keys import KEY_BYTES
from fedstage.algorithm.secure.shares import SHARE_BYTES

PLACE_BYTES = 4  # of a participant in the list of participants still present


class Answered(NamedTuple):
    """The participants that answered each step."""

    advertised: Collection[int]
    shared: Collection[int]
    sent: Collection[int]  # masked vectors
    revealed: Collection[int]

    def bytes_up(self, participant: int, vector: int) -> int:
        """Return the bytes of keys, encrypted shares, the masked vector and revealed shares.

        `vector` is the size of a masked vector.
        """
        up = 2 * KEY_BYTES
        if participant in self.shared:
            up += MESSAGE_BYTES * len(self.advertised)
        if participant in self.sent:
            up += vector
        if participant in self.revealed:
            up += SHARE_BYTES * len(self.shared)
        return up

    def bytes_down(self, participant: int) -> int:
        """Return the bytes of others' keys and shares, and the list of who is still present."""
        down = 2 * KEY_BYTES * len(self.advertised)
        if participant in self.shared:
            down += MESSAGE_BYTES * len(self.shared)
        if participant in self.sent:
            down += PLACE_BYTES * len(self.sent)
        return down
