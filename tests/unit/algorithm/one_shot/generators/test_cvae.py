"""FedCVAE's autoencoder and the limits of its losses; `test_generators.py` has whole runs."""

import copy

import pytest
import torch

from fedstage.algorithm.one_shot.generators import cvae, draw_labels, shares
from fedstage.errors import FedstageError
from fedstage.models.autoencoder import new_autoencoder, new_decoder
from fedstage.settings.generators import Cvae
from fedstage.settings.numerics import Numerics

SETTINGS = Cvae(
    name="cvae", latent=3, width=2, epochs=2, batch_size=4, learning_rate=0.01, beta=0.5
)
NUMERICS = Numerics(device="cpu")


def world(channels, side=8, samples=10):
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(
        0, 256, (samples, channels, side, side), generator=generator, dtype=torch.uint8
    )
    labels = torch.randint(0, 4, (samples,), generator=generator)
    return images, labels, {"shape": [channels, side, side], "classes": 4}


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 32, 32), (3, 17, 30)], ids=str)
def test_images_of_any_size_come_back_in_their_size(shape):
    model = new_autoencoder(shape, 4, 3, 2, torch.Generator().manual_seed(0))
    pixels, labels = torch.rand(5, *shape), torch.arange(5) % 4
    logits, mean, log_variance = model(pixels, labels, torch.zeros(5, 3))
    assert logits.shape == pixels.shape
    assert mean.shape == log_variance.shape == (5, 3)
    assert all(torch.isfinite(value).all() for value in model.state_dict().values())


def test_samples_are_what_the_decoder_makes_of_cut_noise_with_running_statistics():
    _, _, info = world(1)
    labels = torch.tensor([0, 3, 3])
    decoder = new_decoder((1, 8, 8), 4, 3, 2)
    weights = copy.deepcopy(decoder.state_dict())
    narrow = SETTINGS.model_copy(update={"truncation": 1e-4})
    made = cvae.sample(narrow, weights, labels, info, torch.Generator(), torch.device("cpu"))
    expected = decoder.eval()(torch.zeros(3, 3), labels).sigmoid() * 255
    assert made.dtype == torch.uint8
    assert (made - expected).abs().max() <= 0.51
    assert torch.equal(made[1], made[2])  # of one class and, cut off at 0, one z


def test_a_divergence_names_the_setting():
    images, labels, info = world(3)
    wild = SETTINGS.model_copy(update={"learning_rate": 1e30})
    with pytest.raises(FedstageError, match=r"generator.learning_rate = 1e\+30"):
        cvae.train(wild, images, labels, info, (7, "a"), NUMERICS)


@pytest.mark.parametrize(
    ("samples", "images", "expected"),
    [([1, 1], 4, [2, 2]), ([1, 1, 1], 4, [2, 1, 1]), ([90, 9, 1], 10, [9, 1, 0]), ([5], 7, [7])],
)
def test_all_images_are_shared_in_proportion(samples, images, expected):
    assert shares(samples, images) == expected


def test_labels_follow_a_clients_distribution():
    counts = torch.tensor([0, 30, 10], dtype=torch.int32)
    labels = draw_labels(counts, 4000, torch.Generator().manual_seed(0))
    found = torch.bincount(labels, minlength=3)
    assert found[0] == 0
    assert abs(int(found[1]) - 3000) < 150
    assert len(draw_labels(counts, 0, torch.Generator())) == 0
