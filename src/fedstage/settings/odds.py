"""Discriminators, by whose odds clients' votes on public images are weighted (FedGO)."""

from fedstage.settings.base import Fraction, Positive, Rate, Settings


class PublicGenerator(Settings):
    """The generator that the server trains on its public images and all clients receive.

    It is trained against a discriminator of as many channels.
    """

    latent: Positive = 100
    """Dimensions of its input."""
    width: Positive = 64
    """Channels of the network."""
    steps: Positive = 2000
    """Batches that it is trained for."""
    batch_size: Positive = 64
    """Images of a batch."""
    learning_rate: Rate = 0.0002
    """Rate of Adam."""
    beta1: Fraction = 0.5
    """Decay of Adam's mean of gradients."""


class Discriminator(Settings):
    """What each client trains once to tell its own images from those of the generator.

    It has three convolutions.
    """

    width: Positive = 32
    """Channels of the first convolution; the others have twice and four times as many."""
    epochs: Positive = 30
    """Epochs over a client's images."""
    batch_size: Positive = 64
    """Images of a batch."""
    learning_rate: Rate = 0.0002
    """Rate of Adam."""
    beta1: Fraction = 0.5
    """Decay of Adam's mean of gradients."""
