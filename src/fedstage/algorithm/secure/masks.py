"""Masks: keystreams of ChaCha20 (RFC 8439) as integers mod 2^32, added to clients' vectors.

The mask of a pair is added by the client with the lower number and subtracted by the other one, so
that it cancels in their sum. A client's self mask hides its vector if the server gets its pairwise
masks because the client was assumed to have dropped out.

The keys of a pair are X25519's (RFC 7748) and HKDF's with SHA-256 (RFC 5869) of the result. A
private key is 32 secret bytes. Both clients derive the same key from their own private and the
other's public key.
"""

from collections.abc import Mapping
from typing import Literal

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from fedstage.algorithm.secure.vectors import Integers

#: Bytes of a key, whether private, public or derived.
KEY_BYTES = 32


def public_key(private: bytes) -> bytes:
    """Return the public key of a private one."""
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def agree(private: bytes, public: bytes, purpose: str) -> bytes:
    """Return the key for a purpose that the owners of two key pairs share."""
    other = X25519PublicKey.from_public_bytes(public)
    common = X25519PrivateKey.from_private_bytes(private).exchange(other)
    return HKDF(SHA256(), KEY_BYTES, salt=None, info=purpose.encode()).derive(common)


_PURPOSE = "pairwise mask"
_PART = 2**15  # integers drawn at a time
_ZEROS = bytes(4 * _PART)  # encrypted to get the keystream itself


def keystream(key: bytes, count: int) -> Integers:
    """Return PRG(key), uint32 [count]; a key must be used only once, since there is no nonce."""
    stream = np.zeros(count, dtype=np.uint32)
    add_keystream(stream, key)
    return stream


def add_keystream(values: Integers, key: bytes, *, sign: Literal[1, -1] = 1) -> None:
    """Add PRG(key) to values mod 2^32, or subtract it, in place and in parts that fit the cache."""
    encryptor = Cipher(ChaCha20(key, bytes(16)), mode=None).encryptor()
    combine = np.add if sign == 1 else np.subtract
    for start in range(0, len(values), _PART):
        part = values[start : start + _PART]
        drawn = np.frombuffer(encryptor.update(_ZEROS[: 4 * len(part)]), dtype="<u4")
        combine(part, drawn, out=part)


def add_pairwise_masks(
    values: Integers, client: int, private: bytes, public: Mapping[int, bytes]
) -> None:
    """Add a client's masks for its pairs with others to values, uint32 [P], in place.

    Parameters
    ----------
    private : bytes
        The client's private mask key.
    public : mapping of int to bytes
        The public mask keys of the others, by their numbers; the client's own is left out.
    """
    for other, key in public.items():
        if other != client:
            sign: Literal[1, -1] = 1 if client < other else -1
            add_keystream(values, agree(private, key, _PURPOSE), sign=sign)


def masked(
    values: Integers, client: int, seed: bytes, private: bytes, public: Mapping[int, bytes]
) -> Integers:
    """Return y_u of x_u, both uint32 [P]; `seed` is b_u, others as in `add_pairwise_masks`."""
    vector = values.copy()
    add_keystream(vector, seed)
    add_pairwise_masks(vector, client, private, public)
    return vector
