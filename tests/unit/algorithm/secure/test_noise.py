"""Noise of clients in integers: its variance, its sum, and sums that it makes negative."""

import numpy as np
import pytest
import torch

from fedstage.algorithm.secure.noise import skellam, with_noise
from fedstage.algorithm.secure.quantisation import signed
from fedstage.algorithm.secure.vectors import decode, encode
from fedstage.settings.distributed_noise import margin, variance
from fedstage.settings.privacy import ClientPrivacy
from fedstage.settings.secure import MODULUS, SecureAggregation

COUNT = 200_000


def generator(seed=0):
    return np.random.default_rng(seed)


@pytest.mark.parametrize("wanted", [0.5, 40.0, 2.0**40])
def test_noise_has_the_variance_and_no_bias(wanted):
    drawn = skellam(COUNT, wanted, generator())
    assert drawn.dtype == np.int64
    assert drawn.astype(float).var() == pytest.approx(wanted, rel=0.02)
    assert abs(drawn.mean()) < 5 * (wanted / COUNT) ** 0.5


def test_noise_of_several_clients_is_noise_of_their_summed_variance():
    total = sum(skellam(COUNT, 7.0, generator(client)) for client in range(5))
    assert total.astype(float).var() == pytest.approx(35.0, rel=0.02)
    whole = skellam(COUNT, 35.0, generator(9))
    for point in (-6, -1, 0, 4):  # and the same distribution
        assert (total <= point).mean() == pytest.approx((whole <= point).mean(), abs=0.01)


def test_without_variance_nothing_changes():
    values = np.array([0, 5, MODULUS - 1], dtype=np.uint32)
    assert with_noise(values, 0.0, generator()).tolist() == values.tolist()


def test_sums_below_zero_are_negative():
    total = np.array([0, 7, MODULUS - 3, MODULUS - 11], dtype=np.uint32)
    assert signed(total, 10).tolist() == [0, 7, -3, MODULUS - 11]
    assert signed(total, 0).tolist() == total.tolist()


@pytest.mark.parametrize("answered", [4, 3])
def test_the_mean_of_those_who_answer_has_the_noise_of_those_who_answer(answered):
    secure = SecureAggregation(threshold=3, clip=1.0, bits=16, most_samples=10)
    how = ClientPrivacy(clip=0.5, noise=2.0, noise_by="clients")
    change = {"a": torch.full((COUNT,), -0.999)}  # of which noise makes the sum negative
    total = np.zeros(COUNT + 1, dtype=np.uint32)
    for client in range(answered):
        values = encode(secure, "uniform", change, {}, 0, generator(client))
        of_one = variance(how, secure, 4)
        values[:-1] = with_noise(values[:-1], of_one, generator(100 + client))
        total += values
    mean = decode(secure, "uniform", total, answered, change, {}, margin(how, secure, 4))
    found = mean.change["a"].numpy()
    assert mean.samples == 0
    assert found.mean() == pytest.approx(-0.999, abs=0.01)
    assert found.std() * answered == pytest.approx(2.0 * 0.5 * (answered / 4) ** 0.5, rel=0.02)
