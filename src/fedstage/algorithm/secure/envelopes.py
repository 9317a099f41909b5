"""Shares on their way through the server: ChaCha20-Poly1305 (RFC 8439), for one receiver each.

Who sends, who receives and the round are authenticated with the shares, so that a message that is
changed, or delivered to another client or in another round, is refused. The key of a pair is used
once in each direction, with the sender as nonce.
"""

from typing import NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from fedstage.algorithm.secure.keys import agree
from fedstage.algorithm.secure.shares import SHARE_BYTES
from fedstage.errors import FedstageError

#: Bytes of a message: two shares, and a tag of 16 bytes.
MESSAGE_BYTES = 2 * SHARE_BYTES + 16
_PURPOSE = "encryption of shares"


class Shares(NamedTuple):
    """What a client gives another one of its own secrets."""

    seed: bytes  # a share of b_u
    mask_key: bytes  # a share of its private mask key


class Address(NamedTuple):
    """Whom a message is from and for, and in which round of which group."""

    round: int
    group: int
    sender: int
    receiver: int

    @property
    def text(self) -> bytes:
        """What is authenticated."""
        return ",".join(map(str, self)).encode()

    @property
    def nonce(self) -> bytes:
        """The sender, which is different in the two directions of a pair."""
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
        If the message is not what the sender has encrypted for this receiver in this round.
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
