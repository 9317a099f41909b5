"""Generators of images, which clients or the server train so that no public data are needed."""

from collections.abc import Mapping
from typing import ClassVar, Literal

from fedstage.settings.base import (
    Augmentation,
    ByName,
    Choice,
    Fraction,
    Functions,
    NonNegative,
    Positive,
    Rate,
    Settings,
    Share,
    Width,
)


class ImageGenerator(Choice):
    """A generator of labelled images, trained by each of the `clients` or by the `server`.

    A generator on the server learns from the clients' models, together with a student. `of_images`:
    whether samples are images, else features.
    """

    room: ClassVar[str] = "algorithm.one_shot.generators"
    of_images: ClassVar[bool] = True
    trained_by: ClassVar[Literal["clients", "server"]] = "clients"


class OfClients(ImageGenerator):
    """A generator that each client trains, and with which the server makes images.

    The fields in `of_sampling` are read only by the server, once generators are trained.
    """

    functions: ClassVar[Functions] = {
        "train": ("settings", "images", "labels", "info", "key", "numerics"),
        "sample": ("settings", "weights", "labels", "info", "generator", "device"),
    }
    of_sampling: ClassVar[tuple[str, ...]] = ("samples",)
    samples: Positive = 7500
    """Number of images that the server makes."""


class DistilledDecoder(Settings):
    """One decoder that the server trains to draw what the clients' decoders draw (FedCVAE-KD)."""

    samples: Positive = 10000
    """Number of images of the clients' decoders from which it learns."""
    epochs: Positive = 30
    """Number of epochs over the images of the clients' decoders."""
    batch_size: Positive = 32
    """Images per step."""
    learning_rate: Rate = 0.01
    """Learning rate of Adam."""


class Cvae(OfClients):
    """A conditional variational autoencoder per client, whose decoder is sent (FedCVAE-Ens).

    The server generates a share of the images with each decoder, or all of them with one decoder
    that it has `distilled` from the clients'.
    """

    of_sampling: ClassVar[tuple[str, ...]] = ("samples", "truncation", "distilled")
    uses: ClassVar[Mapping[str, str]] = {
        "distilled": "algorithm.one_shot.generators.distilled_decoder"
    }
    name: Literal["cvae"]
    latent: Width = 25
    """Dimension of the decoder's normal input."""
    width: Width = 32
    """Channels of the first convolution; the second has twice as many."""
    beta: NonNegative = 1.0
    """Weight of the divergence from the normal distribution."""
    epochs: Positive = 100
    """Epochs over a client's samples."""
    batch_size: Positive = 32
    """Images per step."""
    learning_rate: Rate = 0.001
    """Learning rate of Adam."""
    truncation: Rate = 3.0
    """Number of deviations at which the decoders' normal inputs are truncated."""
    distilled: DistilledDecoder | None = None
    """One decoder that the server trains from the clients' decoders; by default none."""


class Mixture(OfClients):
    """A mixture of Gaussians of the features of each class of a client (FedPFT).

    Parameters are sent as float16. A class that has no more samples than a mixture `components`
    gets fewer.
    """

    of_images: ClassVar[bool] = False
    name: Literal["mixture"]
    components: Positive = 10
    """Number of Gaussians of a class."""
    covariance: Literal["spherical", "diag", "full"] = "diag"
    """Covariance of each Gaussian: one variance, one per feature, or a full matrix."""


class Adversarial(ImageGenerator):
    """A generator that the server trains against a student and the ensemble of clients' models.

    In each of `server.epochs`, a network with new weights and its input take steps of Adam on one
    batch. The best images of the batch join a pool.
    """

    trained_by: ClassVar[Literal["clients", "server"]] = "server"
    latent: Width = 256
    """Dimension of the network's input."""
    width: Width = 64
    """Channels of the network."""
    steps: Positive = 30
    """Steps of Adam per epoch, all on one batch."""
    batch_size: Positive = 128
    """Images per batch."""
    learning_rate: Rate = 0.001
    """Learning rate of Adam."""
    beta1: Fraction = 0.5
    """Decay rate of Adam's mean of gradients."""
    clip_norm: Rate | None = None
    """Maximum norm of the network's gradient; by default it is not clipped."""
    adversarial: NonNegative = 1.0
    """Weight of the divergence of the student from the ensemble, which the images should keep
    large.
    """
    temperature: Rate = 1.0
    """Temperature of the divergence of the student from the ensemble."""
    augmentation: Augmentation = "none"
    """Random change of the images before models see them while the network learns."""


class Dense(Adversarial):
    """DENSE: images that match the batch normalisation statistics of the clients' models."""

    name: Literal["dense"]
    batch_norm: NonNegative = 1.0
    """Weight of the distance from statistics of batch normalisation."""
    norms: Literal["mean", "sum"] = "mean"
    """Whether distances are averaged over clients, as published, or summed, as released."""


class CoBoosting(Adversarial):
    """Co-Boosting: harder images, perturbed against the ensemble, whose weights learn from them."""

    name: Literal["coboosting"]
    hardness: NonNegative = 1.0
    """Exponent of 1 - p_y in the weight of a sample."""
    step: NonNegative = 8 / 255
    """Size of the perturbation of the images that teach, for pixels from 0 to 1."""
    weight_step: NonNegative = 0.01
    """Step size of the ensemble's weights in the first epoch."""
    weight_decay: Share = 0.99
    """Factor by which the step size of the weights is multiplied each epoch."""


#: Generators of images or features in one shot.
Generator = ByName[Cvae | Mixture | Dense | CoBoosting]


class FedFtg(Choice):
    """FedFTG: images on which a round's student is furthest from the clients' models.

    A generator of images of given classes stays on the server from round to round. Batches have the
    server's batch size. For each batch, first the generator and then the student take their steps,
    until the student has taken `server.steps`.
    """

    room: ClassVar[str] = "algorithm.global_trainers.generators"
    of_images: ClassVar[bool] = True
    fuses: ClassVar[bool] = False  # the clients' logits to their weighted sum, which teaches
    functions: ClassVar[Functions] = {
        "turns": ("settings", "clients"),
        "loss": ("settings", "made", "distance"),
    }
    # It needs only the ensemble's clients, and weights each by its classes itself.
    uses: ClassVar[Mapping[str, str]] = {"name": "algorithm.global_trainers.data_free"}
    name: Literal["fedftg"]
    latent: Width = 100
    """Dimension of the generator's input."""
    width: Width = 64
    """Channels of the generator."""
    steps: Positive = 1
    """Steps of Adam that the generator takes per batch."""
    student_steps: Positive = 5
    """Steps that the student takes per batch."""
    learning_rate: Rate = 0.01
    """Learning rate of Adam."""
    classification: NonNegative = 1.0
    """Weight of the cross entropy of the clients' models with the given classes."""
    diversity: NonNegative = 1.0
    """Weight of the penalty on the similarity of images."""


class FedFtgAsReleased(FedFtg):
    """FedFTG as released: `steps` on each client in turn, with another distance.

    The distance is the absolute difference of logits, in which the client's logits count as fixed.
    The cross entropy is averaged before it is weighted.
    """

    name: Literal["fedftg_as_released"]  # type: ignore[assignment]


class Dfrd(FedFtg):
    """DFRD: images that the clients' weighted ensemble gets right and the student does not.

    The student also learns from images of a moving average of earlier rounds' generators.
    """

    fuses: ClassVar[bool] = True
    name: Literal["dfrd"]  # type: ignore[assignment]
    transferability: NonNegative = 1.0
    """Weight of the divergence on such images."""
    decay: Fraction = 0.5
    """Decay of the moving average of generators over rounds."""
    recall: NonNegative = 0.5
    """Weight of the student's loss on images of the moving average."""


#: Generators of images in rounds, from which students learn.
RoundGenerator = ByName[FedFtg | FedFtgAsReleased | Dfrd]
