"""Discriminators, by whose odds clients' votes on public images are weighted (FedGO)."""

from fedstage.settings.base import Fraction, Positive, Rate, Settings


class PublicGenerator(Settings):
    """The generator that the server trains on its public images and all clients receive.

    A network of `width` channels with an input of `latent` dimensions, trained for `steps` batches
    against a discriminator of as many channels.
    """

    latent: Positive = 100
    width: Positive = 64
    steps: Positive = 2000
    batch_size: Positive = 64
    learning_rate: Rate = 0.0002
    beta1: Fraction = 0.5


class Discriminator(Settings):
    """What each client trains once to tell its own images from those of the generator.

    Three convolutions of `width` channels, twice and four times as many.
    """

    width: Positive = 32
    epochs: Positive = 30
    batch_size: Positive = 64
    learning_rate: Rate = 0.0002
    beta1: Fraction = 0.5
