"""Shares of clients' secrets, which are sent through the server, each encrypted for one receiver.

Shamir's secret sharing (1979): any t shares give the secret, but t - 1 shares reveal nothing. The
field is the integers modulo p = 2^256 + 297, the smallest prime above all secrets of 32 bytes. The
secret is the value at 0 of a polynomial of degree t - 1; the share of client v is its value at
v + 1.

The cipher is ChaCha20-Poly1305 (RFC 8439). The sender, the receiver and the round are authenticated
with the shares. A message that is changed, or delivered to a different client or in a different
round, is therefore refused. The key of a pair is used once in each direction, with the sender as
nonce.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from math import prod
from typing import NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from fedstage.algorithm.secure.masks import agree, keystream
from fedstage.errors import FedstageError

#: The order of the field.
PRIME = 2**256 + 297
#: Bytes of a share.
SHARE_BYTES = 33
_DRAWN = 12  # words of a coefficient, 384 bits: uniform up to 2^-128


def split(secret: bytes, threshold: int, clients: Iterable[int], key: bytes) -> dict[int, bytes]:
    """Return the shares of a 32-byte secret, by client; any `threshold` of them give the secret.

    The polynomial's other coefficients are drawn from the keystream of `key`, which must be kept
    just as secret.
    """
    drawn = keystream(key, _DRAWN * (threshold - 1)).reshape(-1, _DRAWN)
    others = [int.from_bytes(row.astype("<u4").tobytes(), "little") % PRIME for row in drawn]
    polynomial = [int.from_bytes(secret, "big"), *others]
    return {v: _value(polynomial, v + 1).to_bytes(SHARE_BYTES, "big") for v in clients}


def _value(polynomial: list[int], point: int) -> int:
    value = 0
    for coefficient in reversed(polynomial):
        value = (value * point + coefficient) % PRIME
    return value


def combine(shares: Mapping[int, bytes], threshold: int) -> bytes:
    """Return the secret from the first `threshold` of the shares, given by client."""
    used = dict(sorted(shares.items())[:threshold])
    weights = _at_zero(tuple(v + 1 for v in used))
    values = (int.from_bytes(share, "big") for share in used.values())
    secret = sum(weight * value for weight, value in zip(weights, values, strict=True)) % PRIME
    return secret.to_bytes(SHARE_BYTES, "big")[1:]


@lru_cache(maxsize=16)  # the same clients reveal the shares of all secrets of a round
def _at_zero(points: tuple[int, ...]) -> list[int]:
    """Return the Lagrange weights of the values at `points` for the value at 0."""
    return [_weight(point, [other for other in points if other != point]) for point in points]


def _weight(point: int, others: list[int]) -> int:
    divisor = prod(other - point for other in others)
    return prod(others) * pow(divisor, -1, PRIME) % PRIME


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
