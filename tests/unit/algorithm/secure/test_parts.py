"""Quantisation, keys, shares and envelopes of secure aggregation."""

from itertools import combinations

import numpy as np
import pytest

from fedstage.algorithm.secure.masks import agree, keystream, public_key
from fedstage.algorithm.secure.shares import (
    MESSAGE_BYTES,
    Address,
    Shares,
    combine,
    seal,
    split,
    unseal,
)
from fedstage.algorithm.secure.steps import reveal
from fedstage.algorithm.secure.vectors import dequantise, quantise, width
from fedstage.errors import FedstageError
from fedstage.randomness import secret

CLIP, BITS = 0.5, 12


def key(number):
    return secret(0, "test", number)


def rounded(values, seed=0):
    return quantise(values, CLIP, BITS, np.random.default_rng(seed))


def test_sums_of_quantised_changes_are_off_by_at_most_their_steps():
    values = np.random.default_rng(1).uniform(-CLIP, CLIP, size=(9, 1000))
    total = sum(rounded(one, seed) for seed, one in enumerate(values))
    difference = dequantise(total, 9, CLIP, BITS) - values.sum(0)
    assert np.abs(difference).max() <= 9 * width(CLIP, BITS)
    assert np.abs(difference).max() > width(CLIP, BITS) / 2  # it is rounded at all


def test_rounding_is_right_on_average():
    value = 0.3 * width(CLIP, BITS)
    total = rounded(np.full(100_000, value)).sum()
    mean = total * width(CLIP, BITS) / 100_000 - CLIP
    assert mean == pytest.approx(value, abs=0.01 * width(CLIP, BITS))


def test_values_beyond_the_clip_count_as_the_clip():
    assert rounded(np.array([-9.0, -CLIP, CLIP, 9.0])).tolist() == [0, 0, 4095, 4095]


def test_both_clients_of_a_pair_derive_one_key_for_each_purpose():
    assert agree(key(1), public_key(key(2)), "a") == agree(key(2), public_key(key(1)), "a")
    assert agree(key(1), public_key(key(2)), "a") != agree(key(1), public_key(key(2)), "b")
    assert agree(key(1), public_key(key(2)), "a") != agree(key(1), public_key(key(3)), "a")


def test_the_keystream_is_that_of_rfc_8439():
    """Appendix A.1, test vector 1: key and nonce are zero."""
    first = keystream(bytes(32), 4).astype("<u4").tobytes()
    assert first.hex() == "76b8e0ada0f13d90405d6ae55386bd28"


def test_any_threshold_of_shares_gives_the_secret_and_fewer_do_not():
    shares = split(key(1), 3, range(5), key(2))
    for some in combinations(shares, 3):
        assert combine({v: shares[v] for v in some}, 3) == key(1)
    for few in combinations(shares, 2):
        assert combine({v: shares[v] for v in few}, 2) != key(1)


def test_a_message_is_for_one_receiver_in_one_round():
    shares = Shares(*split(key(1), 2, range(2), key(2)).values())
    sent = seal(shares, Address(1, 0, 4, 5), key(4), public_key(key(5)))
    assert len(sent) == MESSAGE_BYTES
    assert unseal(sent, Address(1, 0, 4, 5), key(5), public_key(key(4))) == shares
    with pytest.raises(FedstageError, match="of participant 4 for participant 5 were altered"):
        unseal(sent, Address(2, 0, 4, 5), key(5), public_key(key(4)))
    with pytest.raises(FedstageError, match="were altered"):
        unseal(sent, Address(1, 0, 4, 6), key(6), public_key(key(4)))


def test_never_both_shares_of_one_client_are_revealed():
    held = {v: Shares(b"seed", b"key") for v in range(4)}
    found = reveal(held, survivors=(0, 2))
    assert (sorted(found.seeds), sorted(found.mask_keys)) == ([0, 2], [1, 3])
