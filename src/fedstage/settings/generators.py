"""Generators of images: what a client or the server trains so that no public data are needed."""

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
from fedstage.settings.traits import OF_STUDENTS, UNRECORDED, Lacks, Needs, Trait


class ImageGenerator(Choice):
    """What generates labelled images, trained by each of the `clients` or by the `server`.

    What the server trains learns from the clients' models, together with a student.
    """

    room: ClassVar[str] = "algorithm.one_shot.generators"
    trained_by: ClassVar[Literal["clients", "server"]] = "clients"
    needs: ClassVar[Needs] = {"name": (Trait.IMAGES, Trait.GENERATED, Trait.LEARNING)}


class OfClients(ImageGenerator):
    """A generator that each client trains, and with which the server makes images.

    The fields in `of_sampling` are those that only the server reads, once generators are trained.
    """

    functions: ClassVar[Functions] = {
        "train": ("settings", "images", "labels", "info", "key", "numerics"),
        "sample": ("settings", "weights", "labels", "info", "generator", "device"),
    }
    of_sampling: ClassVar[tuple[str, ...]] = ("samples",)
    lacks: ClassVar[Lacks] = {"name": ("", Trait.FROM_SERVER)}
    samples: Positive = 7500
    """Images that the server makes."""


class DistilledDecoder(Settings):
    """One decoder that the server trains to draw what the clients' decoders do (FedCVAE-KD)."""

    samples: Positive = 10000
    """Images of the clients' decoders that it learns from."""
    epochs: Positive = 30
    """Epochs over these images."""
    batch_size: Positive = 32
    """Images of a step."""
    learning_rate: Rate = 0.01
    """Rate of Adam."""


class Cvae(OfClients):
    """A conditional variational autoencoder of each client, whose decoder travels (FedCVAE-Ens).

    The server generates images with each decoder, a share of them, or with one that it has
    `distilled` from all.
    """

    of_sampling: ClassVar[tuple[str, ...]] = ("samples", "truncation", "distilled")
    uses: ClassVar[Mapping[str, str]] = {
        "distilled": "algorithm.one_shot.generators.distilled_decoder"
    }
    name: Literal["cvae"]
    latent: Width = 25
    """Dimensions of its input."""
    width: Width = 32
    """Channels of its first convolution; the second has twice as many."""
    beta: NonNegative = 1.0
    """Weight of the divergence from the normal distribution."""
    epochs: Positive = 100
    """Epochs over a client's samples."""
    batch_size: Positive = 32
    """Images of a step."""
    learning_rate: Rate = 0.001
    """Rate of Adam."""
    truncation: Rate = 3.0
    """The decoders' normal inputs are cut off at so many deviations."""
    distilled: DistilledDecoder | None = None
    """One decoder that the server trains from the clients'."""


class Adversarial(ImageGenerator):
    """A generator that the server trains against the ensemble of clients' models, and a student.

    In each of `server.epochs` a network with new weights, and its input, take steps of Adam on a
    batch, whose best images join a pool.
    """

    trained_by: ClassVar[Literal["clients", "server"]] = "server"
    needs: ClassVar[Needs] = {"name": (Trait.SERVER, Trait.EPOCHS)}
    lacks: ClassVar[Lacks] = {
        "name": (
            "whose student learns with it, from the models of all clients",
            Trait.KEPT,
            Trait.BUFFERED,
            Trait.CHOSEN,
        )
    }
    latent: Width = 256
    """Dimensions of the network's input."""
    width: Width = 64
    """Channels of the network."""
    steps: Positive = 30
    """Steps of Adam in an epoch, all on one batch."""
    batch_size: Positive = 128
    """Images of a batch."""
    learning_rate: Rate = 0.001
    """Rate of Adam."""
    beta1: Fraction = 0.5
    """Decay of Adam's mean of gradients."""
    clip_norm: Rate | None = None
    """Largest norm of the network's gradient."""
    adversarial: NonNegative = 1.0
    """Weight of the divergence of the student from the ensemble, which images are to keep large."""
    temperature: Rate = 1.0
    """Temperature of that divergence."""
    augmentation: Augmentation = "none"
    """How the models see the images while the network learns."""


class Dense(Adversarial):
    """DENSE: images like those that norms of the clients' models have seen."""

    name: Literal["dense"]
    batch_norm: NonNegative = 1.0
    """Weight of the distance from statistics of batch normalisation."""
    norms: Literal["mean", "sum"] = "mean"
    """Distances are the mean over clients as published, or the sum as released."""
    only_disagreeing: bool = True
    """The divergence counts only where student and ensemble disagree."""


class CoBoosting(Adversarial):
    """Co-Boosting: harder images, moved against the ensemble, whose weights learn from them."""

    name: Literal["coboosting"]
    hardness: NonNegative = 1.0
    """A sample counts by this power of 1 - p_y."""
    step: NonNegative = 8 / 255
    """How far what teaches is moved, of pixels from 0 to 1."""
    weight_step: NonNegative = 0.01
    """Step of the ensemble's weights in the first epoch."""
    weight_decay: Share = 0.99
    """What their step is multiplied by each epoch."""


#: What generates images in one shot.
Generator = ByName[Cvae | Dense | CoBoosting]


class FedFtg(Choice):
    """FedFTG: images on which the student of a round is furthest from the clients' models.

    A generator of images of given classes stays on the server from round to round. For each batch,
    which has the size of the server's, it takes its steps and then the student takes its own, until
    it has taken `server.steps`.
    """

    room: ClassVar[str] = "algorithm.global_trainers.generators"
    functions: ClassVar[Functions] = {
        "turns": ("settings", "clients"),
        "loss": ("settings", "made", "distance"),
    }
    # Of the ensemble it needs the clients alone: it weighs each by its classes itself.
    needs: ClassVar[Needs] = {
        "name": (Trait.IMAGES, Trait.GENERATED, Trait.UNIFORM, Trait.KL, Trait.STEPS)
    }
    lacks: ClassVar[Lacks] = {
        "name": (
            "whose student learns with it, in steps of its own",
            Trait.PRESENT,
            *OF_STUDENTS,
            *UNRECORDED,
        )
    }
    uses: ClassVar[Mapping[str, str]] = {"name": "algorithm.global_trainers.data_free"}
    name: Literal["fedftg"]
    latent: Width = 100
    """Dimensions of the generator's input."""
    width: Width = 64
    """Channels of the generator."""
    steps: Positive = 1
    """Steps of Adam that the generator takes for a batch."""
    student_steps: Positive = 5
    """Steps that the student takes on a batch."""
    learning_rate: Rate = 0.01
    """Rate of Adam."""
    classification: NonNegative = 1.0
    """Weight of the cross entropy of the clients' models to the classes."""
    diversity: NonNegative = 1.0
    """Weight of how alike the images are."""


class FedFtgAsReleased(FedFtg):
    """FedFTG as its code is: `steps` of each client in turn, of another distance.

    It is the absolute difference of logits, of which the client's count as fixed. The cross entropy
    is a mean before it is weighted.
    """

    name: Literal["fedftg_as_released"]  # type: ignore[assignment]


#: What generates images in the rounds, for the students that learn from them.
RoundGenerator = ByName[FedFtg | FedFtgAsReleased]
