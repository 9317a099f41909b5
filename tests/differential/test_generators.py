"""Methods that generate images against plain code, from the same draws."""

from functools import partial

import pytest
import torch
from reference import fedcvae
from reference.coboosting import coboosting
from reference.dense import dense
from torch import nn

from fedstage.algorithm.one_shot.generators import cvae, draw_labels, of_server, shares
from fedstage.algorithm.one_shot.generators.adversarial import synthesise
from fedstage.algorithm.one_shot.generators.distilled_decoder import distil, even_labels
from fedstage.algorithm.one_shot.generators.world import World
from fedstage.models.autoencoder import new_autoencoder, new_decoder
from fedstage.models.image_generator import draw_parameters, new_image_generator
from fedstage.randomness import torch_generator
from fedstage.settings.generators import CoBoosting, Cvae, Dense
from fedstage.settings.numerics import Numerics
from fedstage.settings.optimisation import Client
from fedstage.settings.server import Server
from fedstage.training.batches import all_batches, client_batches, public_batches
from fedstage.training.images import augment, draw

KEY = (5, "a")
CPU = Numerics(device="cpu")
INFO = {"shape": [1, 8, 8], "classes": 3, "mean": [0.3], "std": [0.2]}
EPOCHS, STEPS, LATENT, WIDTH, BATCH, SERVER_BATCH = 3, 3, 4, 2, 6, 4
SERVER = Server(
    epochs=EPOCHS, batch_size=SERVER_BATCH, learning_rate=0.05, momentum=0.9, temperature=2.0
)
OF_STUDENT = {"student_rate": 0.05, "momentum": 0.9, "tau": 2.0}
SMALL = {
    "latent": LATENT, "width": WIDTH, "steps": STEPS, "batch_size": BATCH, "learning_rate": 0.01,
}  # fmt: skip
DENSE = Dense(name="dense", adversarial=0.5, **SMALL)
CLOSE = 2e-5


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    torch.set_num_threads(1)


def network(seed):
    torch.manual_seed(seed)
    layers = nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(), nn.Linear(108, 3)
    model = nn.Sequential(*layers)
    with torch.no_grad():
        model(torch.randn(20, 1, 8, 8))  # running statistics
    return model


class Draws:
    """What the package draws of a run of DENSE or Co-Boosting."""

    latent, width = LATENT, WIDTH

    def __init__(self, augmentation="none"):
        self.augmentation, self.of_epoch = augmentation, {}
        self.clients = [network(seed).eval() for seed in range(2)]
        self.student = partial(network, 9)

    def weights(self, epoch):
        drawn = torch_generator(*KEY, "batch", epoch, "generator")
        return new_image_generator((1, 8, 8), LATENT, WIDTH, drawn).state_dict().values()

    def start(self, epoch):
        drawn = torch_generator(*KEY, "batch", epoch, "latent")
        z = torch.randn(BATCH, LATENT, generator=drawn)
        return z, torch.randint(0, 3, (BATCH,), generator=drawn)

    def augmented(self, epoch, step, pixels):
        key = (*KEY, "batch", epoch, "augmentation")
        drawn = self.of_epoch.setdefault(key, torch_generator(*key))
        return augment(pixels, draw(self.augmentation, len(pixels), drawn))

    def standardised(self, pixels):
        return (pixels - 0.3) / 0.2

    def weight_batches(self, epoch, samples):
        order = torch.randperm(samples, generator=torch_generator(*KEY, "weights", epoch))
        return [order[batch] for batch in all_batches(samples, SERVER_BATCH)]

    def batches(self, epoch, samples):
        self.drawn = torch_generator(*KEY, "student", epoch)
        return public_batches(samples, SERVER_BATCH, samples // SERVER_BATCH, self.drawn)

    def directions(self, epoch, shape):
        return torch.empty(shape).uniform_(-1, 1, generator=self.drawn)


def run(settings):
    student = network(9)
    world = World([network(seed) for seed in range(2)], student, INFO, CPU)
    made = synthesise(settings, of_server(settings, INFO), world, SERVER, KEY)
    return made, student


def compare(made, student, pool, labels, expected):
    assert torch.equal(made.images.labels, labels)
    assert torch.equal(made.images.pixels, (pool * 255).round().to(torch.uint8))
    for name, value in expected.state_dict().items():
        torch.testing.assert_close(student.state_dict()[name], value, atol=CLOSE, rtol=CLOSE)


@pytest.mark.parametrize(
    "changes",
    [{}, {"norms": "sum"}, {"batch_norm": 0.0},
     {"augmentation": "crop_flip", "adversarial": 1.0}],
    ids=str,
)  # fmt: skip
def test_dense_ends_in_the_same_images_and_student(changes):
    settings = DENSE.model_copy(update=changes)
    pool, labels, expected = dense(
        Draws(settings.augmentation), epochs=EPOCHS, steps=STEPS, rate=0.01, l1=settings.batch_norm,
        l2=settings.adversarial, over_clients=settings.norms, masked=True,
        **OF_STUDENT,
    )  # fmt: skip
    compare(*run(settings), pool, labels, expected)


def test_coboosting_ends_in_the_same_images_weights_and_student():
    settings = CoBoosting(name="coboosting", clip_norm=0.01, temperature=3.0, **SMALL)
    pool, labels, w, expected = coboosting(
        Draws(), epochs=EPOCHS, steps=STEPS, rate=0.01, clip=0.01, hardness=1.0, weight=1.0,
        temperature=3.0, mu=0.01, decay=0.99, eps=8 / 255, **OF_STUDENT,
    )  # fmt: skip
    made, student = run(settings)
    compare(made, student, pool, labels, expected)
    torch.testing.assert_close(made.weights, w)
    assert (w != 0.5).any()


def test_both_are_the_same_without_what_they_add():
    """Co-Boosting of equal weights, all samples alike and no step is DENSE without its norms."""
    boosting = CoBoosting(
        name="coboosting", hardness=0.0, step=0.0, weight_step=0.0, adversarial=0.7, **SMALL
    )
    pool, labels, expected = dense(
        Draws(), epochs=EPOCHS, steps=STEPS, rate=0.01, l1=0.0, l2=0.7, over_clients="mean",
        masked=False, **OF_STUDENT,
    )  # fmt: skip
    compare(*run(boosting), pool, labels, expected)


# --- FedCVAE --------------------------------------------------------------------------------------

CVAE = Cvae(
    name="cvae", latent=3, width=4, epochs=2, batch_size=8, learning_rate=0.01, beta=0.5,
    distilled={"samples": 21, "epochs": 2, "batch_size": 8, "learning_rate": 0.02},
)  # fmt: skip


class CvaeDraws:
    """What the package draws where an autoencoder, or one decoder, is trained."""

    latent, width, classes = 3, 4, 4

    def __init__(self, shape, key, epochs):
        self.shape, self.key, self.epochs = shape, key, epochs
        self.random = torch_generator(*key, "noise")

    def autoencoder(self):
        return new_autoencoder(self.shape, 4, 3, 4, torch_generator(*self.key, "weights"))

    def encoder(self):
        return self.autoencoder().encoder.state_dict().values()

    def decoder(self):
        return self.autoencoder().decoder.state_dict().values()

    def batches(self, samples):
        settings = Client(epochs=self.epochs, batch_size=8, learning_rate=1.0)
        return client_batches(samples, settings, torch_generator(*self.key, "batches"))

    def noise(self, count):
        return torch.randn(count, 3, generator=self.random)


class DistillationDraws(CvaeDraws):
    def decoder(self):
        decoder = new_decoder(self.shape, 4, 3, 4)
        draw_parameters(decoder, torch_generator(*self.key, "weights"))
        return decoder.state_dict().values()


def samples_of(channels, client):
    generator = torch.Generator().manual_seed(client)
    count = 16 + 8 * client
    shape = (count, channels, 8, 8)
    images = torch.randint(0, 256, shape, generator=generator, dtype=torch.uint8)
    return images, torch.randint(0, 4, (count,), generator=generator)


def decoders_of(channels, info):
    """Return decoders of both, and label counts, of two clients."""
    theirs, mine, counts = {}, [], []
    for client in range(2):
        images, labels = samples_of(channels, client)
        key = (7, client)
        theirs[client], _ = cvae.train(CVAE, images, labels, info, key, CPU)
        draws = CvaeDraws((channels, 8, 8), key, epochs=2)
        mine.append(fedcvae.client(draws, images.float() / 255, labels, beta=0.5, rate=0.01))
        counts.append(torch.bincount(labels, minlength=4))
    return theirs, mine, counts


def close(weights, network):
    expected = network.state_dict().values()
    for one, other in zip(weights.values(), expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=2e-5)


def same_images(made, pixels):
    assert (made.float() - pixels * 255).abs().max() <= 0.51


@pytest.mark.parametrize("channels", [1, 3])
def test_clients_decoders_draw_the_same_images(channels):
    info = {"shape": [channels, 8, 8], "classes": 4}
    theirs, mine, counts = decoders_of(channels, info)
    for client in range(2):
        close(theirs[client], mine[client])
        random = torch.Generator().manual_seed(client)
        labels = draw_labels(counts[client], 9, random)
        cpu = torch.device("cpu")
        made = cvae.sample(
            CVAE, theirs[client], labels, info, torch.Generator().manual_seed(9), cpu
        )
        z = cvae.draw_noise(CVAE, 9, torch.Generator().manual_seed(9))
        assert z.abs().max() <= CVAE.truncation
        same_images(made, fedcvae.drawn(mine[client], z, labels))


@pytest.mark.parametrize("channels", [1, 3])
def test_the_decoder_that_learns_from_all_is_the_same(channels):
    info, key = {"shape": [channels, 8, 8], "classes": 4}, (7, "one")
    theirs, mine, counts = decoders_of(channels, info)
    made = distil(CVAE, CVAE.distilled, theirs, counts, info, key, torch.device("cpu"))
    starts = []
    for client, number in enumerate(shares([16, 24], 21)):
        random = torch_generator(*key, "client", client)
        labels = draw_labels(counts[client], number, random)
        starts.append((cvae.draw_noise(CVAE, number, random), labels))
    draws = DistillationDraws((channels, 8, 8), key, epochs=2)
    close(made, fedcvae.distilled(draws, mine, starts, rate=0.02))


def test_labels_of_one_decoder_are_equally_frequent_among_classes_that_somebody_has():
    counts = [torch.tensor([9, 0, 1, 0]), torch.tensor([0, 0, 50, 1])]
    labels = even_labels(counts, 3000, torch.Generator().manual_seed(0))
    found = torch.bincount(labels, minlength=4)
    assert found[1] == 0
    assert (found[[0, 2, 3]] - 1000).abs().max() < 120
