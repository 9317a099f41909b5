"""Shares sent through the server, each encrypted for one receiver: ChaCha20-Poly1305 (RFC 8439).

The sender, the receiver and the round are authenticated with the shares. A message that is changed,
or delivered to a different client or in a different round, is therefore refused. The key of a pair
is used once in each direction, with the sender as nonce.
"""

from typing import NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from fedstage.algorithm.secure.masks import agree
from fedstage.algorithm.secure.shares import SHARE_BYTES
from fedstage.errors import FedstageError

#: Bytes of a message: two shares, and a tag of 16 bytes.
MESSAGE_BYTES = 2 * SHARE_BYTES + 16
_PURPOSE = "encryption of shares"


class Shares(NamedTuple):
    """Shares of a client's own secrets that it gives to another client."""

    seed: bytes  # a share of b_u
    mask_key: bytes  # a share of its private mask key


class Address(NamedTuple):
    """The sender and receiver of a message, and the round and group."""

    round: int
    group: int
    sender: int
    receiver: int

    @property
    def text(self) -> bytes:
        """The data to be authenticated."""
        return ",".join(map(str, self)).encode()

    @property
    def nonce(self) -> bytes:
        """The sender, which differs between the two directions of a pair."""
        return self.sender.to_bytes(12, "big")


def seal(shares: Shares, address: Address, private: bytes, public: bytes) -> bytes:
    """Return shares encrypted with the sender's private and the receiver's public key."""
    cipher = ChaCha20Poly1305(agree(private, public, _PURPOSE))
    return cipher.encrypt(address.nonce, b"".join(shares), address.text)


def unseal(message: bytes, address: Address, private: bytes, public: bytes) -> Shares:
    """Return shares decrypted with the receiver's private and the sender's public key.

    Raises
    ------
    FedstageError
        If the message is not the one that the sender encrypted for this receiver in this round.
    """
    cipher = ChaCha20Poly1305(agree(private, public, _PURPOSE))
    try:
        text = cipher.decrypt(address.nonce, message, address.text)
    except InvalidTag:
        raise FedstageError(
            f"round {address.round}, group {address.group}: the shares of participant "
            f"{address.sender} for participant {address.receiver} were altered on their way"
        ) from None
    return Shares(text[:SHARE_BYTES], text[SHARE_BYTES:])
