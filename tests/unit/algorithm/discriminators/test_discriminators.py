"""Discriminators and the generator that they are trained against."""

import pytest
import torch

from fedstage.algorithm.discriminators import (
    real_or_made,
    taken_for_real,
    train_discriminator,
)
from fedstage.errors import FedstageError
from fedstage.models.image_generator import new_image_generator
from fedstage.models.loading import state_of
from fedstage.randomness import torch_generator
from fedstage.settings.ensembles import Discriminator, PublicGenerator
from fedstage.settings.numerics import Numerics

INFO = {"shape": [1, 8, 8], "classes": 3, "mean": [0.5], "std": [0.25]}
SMALL = PublicGenerator(latent=3, width=2, steps=4, batch_size=8)
JUDGE = Discriminator(width=4, epochs=2, batch_size=8)
PLAIN = Numerics(device="cpu")


def images(count, low=0, high=256, seed=0):
    random = torch.Generator().manual_seed(seed)
    return torch.randint(low, high, (count, 1, 8, 8), generator=random, dtype=torch.uint8)


def generator():
    return new_image_generator((1, 8, 8), SMALL.latent, SMALL.width, torch_generator(0))


def discriminate(own, client=0, settings=JUDGE, key=(1, "client_discriminator")):
    return train_discriminator(settings, SMALL, generator(), own, INFO, key, client, PLAIN)


def test_losses_are_those_of_probabilities():
    real, made = torch.randn(7, dtype=torch.float64), torch.randn(5, dtype=torch.float64)
    of_real, of_made = real.sigmoid(), made.sigmoid()
    expected = -of_real.log().mean() - (1 - of_made).log().mean()
    torch.testing.assert_close(real_or_made(real, made), expected)
    torch.testing.assert_close(taken_for_real(made), -of_made.log().mean())


def test_clients_start_from_the_same_weights_and_draw_their_own():
    still = JUDGE.model_copy(update={"learning_rate": 1e-30})
    own = images(20)
    one, other = (state_of(discriminate(own, client, still)[0]) for client in (0, 1))
    assert all(torch.equal(one[name], other[name]) for name in one)
    one, other = (state_of(discriminate(own, client)[0]) for client in (0, 1))
    assert any(not torch.equal(one[name], other[name]) for name in one)


def test_a_discriminator_that_diverges_is_refused():
    wild = JUDGE.model_copy(update={"learning_rate": 1e30})
    with pytest.raises(
        FedstageError, match=r"lower ensemble\.discriminator\.learning_rate = 1e\+30"
    ):
        discriminate(images(20), settings=wild)
