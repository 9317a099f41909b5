"""Messages of secure aggregation as files, one per participant and step, and their bytes.

The message of a participant that is absent, or has dropped out, has no tensors. The others have

    public keys      channel, mask        [32]
    shares           messages             [n, 82], encrypted for the participants `receivers`
    masked vector    vector               uint32 [P + 1]
    receipt          arrived              [1]: the server tells all clients who is still present
    revealed shares  seeds, mask_keys     [n, 33], of the participants `seeds_of`, `mask_keys_of`

A participant also has secrets, which it does not send: channel, mask and seed [32]. All tensors
except vectors are bytes, uint8.
"""

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from fedstage.algorithm.secure.masks import KEY_BYTES
from fedstage.algorithm.secure.shares import MESSAGE_BYTES, SHARE_BYTES
from fedstage.algorithm.secure.steps import Revealed
from fedstage.storage.tensors import open_tensors
from fedstage.weights import Tensors, Weights


class Message(NamedTuple):
    """What a participant sends in a step."""

    tensors: Tensors
    metadata: dict[str, Any]

    @property
    def participant(self) -> int:
        """The sender."""
        return int(self.metadata["participant"])

    def text(self, name: str) -> bytes:
        """Return the bytes of one tensor [n]."""
        return bytes(self.tensors[name].numpy())

    def texts(self, name: str, of: str) -> dict[int, bytes]:
        """Return the rows of a tensor [n, k] by the participants in the metadata's list `of`."""
        return dict(zip(self.metadata[of], map(bytes, self.tensors[name].numpy()), strict=True))


def read_messages(paths: Sequence[Path]) -> list[Message]:
    """Return the messages of all participants of a group in their order, including empty ones."""
    read = (Message(*opened) for opened in map(open_tensors, paths))
    return sorted(read, key=lambda message: message.participant)


def answered(messages: Iterable[Message]) -> dict[int, Message]:
    """Return the messages that were sent, by participant."""
    return {message.participant: message for message in messages if message.tensors}


def as_rows(texts: Iterable[bytes], length: int) -> torch.Tensor:
    """Return texts of `length` bytes each as a tensor uint8 [n, length]."""
    rows = [list(text) for text in texts]
    return torch.tensor(rows, dtype=torch.uint8).reshape(-1, length)


def as_tensors(keys: dict[str, bytes]) -> Weights:
    """Return keys as tensors uint8 [32] by their names."""
    return {name: torch.frombuffer(bytearray(key), dtype=torch.uint8) for name, key in keys.items()}


def revealed_by(message: Message) -> Revealed:
    """Return the shares that a participant reveals."""
    return Revealed(
        message.texts("seeds", of="seeds_of"), message.texts("mask_keys", of="mask_keys_of")
    )


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
