"""Generators of images: what a client or the server trains so that no public data are needed."""

from typing import ClassVar, Literal

from fedstage.settings.base import ByName, Choice, NonNegative, Positive, Rate


class ImageGenerator(Choice):
    """What generates labelled images, trained by each of the `clients` or by the `server`.

    What the server trains learns from the clients' models, and a student learns beside it.
    """

    room: ClassVar[str] = "algorithm.one_shot.generators"
    trained_by: ClassVar[Literal["clients", "server"]] = "clients"


class Cvae(ImageGenerator):
    """A conditional variational autoencoder of each client, whose decoder travels (FedCVAE-Ens).

    It has `latent` dimensions, convolutions of `width` and twice as many channels, and is trained
    for `epochs` with Adam; `beta` weighs the divergence from the normal distribution. The server
    generates `samples` images from normal variables cut off at +-`truncation`.
    """

    name: Literal["cvae"]
    latent: Positive = 25
    width: Positive = 32
    beta: NonNegative = 1.0
    epochs: Positive = 100
    batch_size: Positive = 32
    learning_rate: Rate = 0.001
    samples: Positive = 7500
    truncation: Rate = 3.0


#: What only the server needs to know to generate images with clients' decoders.
OF_SAMPLING = ("samples", "truncation")

Generator = ByName[Cvae]
