"""Masks: keystreams of ChaCha20 (RFC 8439) as integers mod 2^32, and what each client adds of them.

The mask of a pair is added by the client of the lower number and subtracted by the other one, so
that it vanishes from their sum. A client's self mask hides its vector if the server gets the masks
of its pairs because it was thought to be gone.
"""

from collections.abc import Mapping

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

from fedstage.algorithm.secure.keys import agree
from fedstage.algorithm.secure.quantisation import Integers

_PURPOSE = "pairwise mask"


def keystream(key: bytes, count: int) -> Integers:
    """Return PRG(key), uint32 [count]; a key must have one use, since there is no nonce."""
    encryptor = Cipher(ChaCha20(key, bytes(16)), mode=None).encryptor()
    return np.frombuffer(encryptor.update(bytes(4 * count)), dtype="<u4").astype(np.uint32)


def pairwise_mask(client: int, private: bytes, public: Mapping[int, bytes], count: int) -> Integers:
    """Return what a client adds for its pairs with others, uint32 [count].

    Parameters
    ----------
    private : bytes
        The client's private mask key.
    public : mapping of int to bytes
        The public mask keys of the others, by their numbers; the client's own is left out.
    """
    total = np.zeros(count, dtype=np.uint32)
    for other, key in public.items():
        if other != client:
            mask = keystream(agree(private, key, _PURPOSE), count)
            total += mask if client < other else -mask
    return total


def masked(
    values: Integers, client: int, seed: bytes, private: bytes, public: Mapping[int, bytes]
) -> Integers:
    """Return y_u, uint32 [P], of x_u, uint32 [P]; `seed` is b_u, the rest as in `pairwise_mask`."""
    count = len(values)
    return values + keystream(seed, count) + pairwise_mask(client, private, public, count)
