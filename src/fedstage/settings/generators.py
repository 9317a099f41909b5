"""Generators of images: what a client or the server trains so that no public data are needed."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from fedstage.settings.base import (
    Augmentation,
    ByName,
    Choice,
    Fraction,
    NonNegative,
    Positive,
    Rate,
    Settings,
)
from fedstage.settings.traits import OF_STUDENTS, UNRECORDED, Lacks, Needs, Trait


class ImageGenerator(Choice):
    """What generates labelled images, trained by each of the `clients` or by the `server`.

    What the server trains learns from the clients' models, and a student learns beside it.
    """

    room: ClassVar[str] = "algorithm.one_shot.generators"
    trained_by: ClassVar[Literal["clients", "server"]] = "clients"
    needs: ClassVar[Needs] = {"name": (Trait.IMAGES, Trait.GENERATED, Trait.LEARNING)}


class OfClients(ImageGenerator):
    """A generator that each client trains, and with which the server makes `samples` images.

    The fields in `of_sampling` are those that only the server reads, once generators are trained.
    """

    of_sampling: ClassVar[tuple[str, ...]] = ("samples",)
    lacks: ClassVar[Lacks] = {"name": ("", Trait.FROM_SERVER)}
    samples: Positive = 7500


class DistilledDecoder(Settings):
    """One decoder that the server trains to draw what the clients' decoders do (FedCVAE-KD).

    It learns for `epochs` of Adam from `samples` images of theirs.
    """

    samples: Positive = 10000
    epochs: Positive = 30
    batch_size: Positive = 32
    learning_rate: Rate = 0.01


class Cvae(OfClients):
    """A conditional variational autoencoder of each client, whose decoder travels (FedCVAE-Ens).

    It has `latent` dimensions, convolutions of `width` and twice as many channels, and is trained
    for `epochs` with Adam; `beta` weighs the divergence from the normal distribution. The server
    generates `samples` images from normal variables cut off at +-`truncation`: with each decoder a
    share of them, or with the one that it has `distilled` from all.
    """

    of_sampling: ClassVar[tuple[str, ...]] = ("samples", "truncation", "distilled")
    uses: ClassVar[Mapping[str, str]] = {
        "distilled": "algorithm.one_shot.generators.distilled_decoder"
    }
    name: Literal["cvae"]
    latent: Positive = 25
    width: Positive = 32
    beta: NonNegative = 1.0
    epochs: Positive = 100
    batch_size: Positive = 32
    learning_rate: Rate = 0.001
    truncation: Rate = 3.0
    distilled: DistilledDecoder | None = None


class Adversarial(ImageGenerator):
    """A generator that the server trains against the ensemble of clients' models, and a student.

    In each of `server.epochs` a network of `width` channels with new weights, and its input of
    `latent` dimensions, take `steps` steps of Adam on a batch, whose best images join a pool.
    `adversarial` weighs the divergence of the student from the ensemble, with a `temperature`, that
    the images are to keep large. The models see them with an `augmentation` while it learns.
    `clip_norm` is of the network's gradient.
    """

    trained_by: ClassVar[Literal["clients", "server"]] = "server"
    needs: ClassVar[Needs] = {"name": (Trait.SERVER, Trait.EPOCHS)}
    lacks: ClassVar[Lacks] = {
        "name": (
            "whose student learns beside it, from the models of all clients",
            Trait.KEPT,
            Trait.BUFFERED,
            Trait.CHOSEN,
        )
    }
    latent: Positive = 256
    width: Positive = 64
    steps: Positive = 30
    batch_size: Positive = 128
    learning_rate: Rate = 0.001
    beta1: Fraction = 0.5
    clip_norm: Rate | None = None
    adversarial: NonNegative = 1.0
    temperature: Rate = 1.0
    augmentation: Augmentation = "none"


class Dense(Adversarial):
    """DENSE: images like those that norms of the clients' models have seen (`batch_norm`).

    The distances from these are the `mean` over clients as published, or the `sum` as released
    (`norms`). The divergence counts only where student and ensemble disagree (`only_disagreeing`).
    """

    name: Literal["dense"]
    batch_norm: NonNegative = 1.0
    norms: Literal["mean", "sum"] = "mean"
    only_disagreeing: bool = True


class CoBoosting(Adversarial):
    """Co-Boosting: harder images, moved against the ensemble, whose weights learn from them.

    A sample counts by the power `hardness` of 1 - p_y. What teaches is moved by `step`, of pixels
    from 0 to 1. `weight_step` times `weight_decay` to the power of the epoch moves the weights.
    """

    name: Literal["coboosting"]
    hardness: NonNegative = 1.0
    step: NonNegative = 8 / 255
    weight_step: NonNegative = 0.01
    weight_decay: Annotated[float, Field(gt=0, le=1)] = 0.99


#: What generates images in one shot.
Generator = ByName[Cvae | Dense | CoBoosting]


class FedFtg(Choice):
    """FedFTG: images on which the student of a round is furthest from the clients' models.

    A generator of images of given classes, a network of `width` channels with an input of `latent`
    dimensions, stays on the server from round to round. For each batch, which has the size of the
    server's, it takes `steps` steps of Adam, and then the student `student_steps`, until it has
    taken `server.steps`. `classification` weighs the cross entropy of the clients' models to the
    classes, `diversity` how alike the images are.
    """

    room: ClassVar[str] = "algorithm.global_trainers.generators"
    # Of the ensemble it needs the clients alone: it weighs each by its classes itself.
    needs: ClassVar[Needs] = {
        "name": (Trait.IMAGES, Trait.GENERATED, Trait.UNIFORM, Trait.KL, Trait.STEPS)
    }
    lacks: ClassVar[Lacks] = {
        "name": (
            "whose student learns beside it, in steps of its own",
            Trait.PRESENT,
            *OF_STUDENTS,
            *UNRECORDED,
        )
    }
    uses: ClassVar[Mapping[str, str]] = {"name": "algorithm.global_trainers.data_free"}
    name: Literal["fedftg"]
    latent: Positive = 100
    width: Positive = 64
    steps: Positive = 1
    student_steps: Positive = 5
    learning_rate: Rate = 0.01
    classification: NonNegative = 1.0
    diversity: NonNegative = 1.0


class FedFtgAsReleased(FedFtg):
    """FedFTG as its code is: `steps` of each client in turn, of another distance.

    It is the absolute difference of logits, of which the client's count as fixed. The cross entropy
    is a mean before it is weighted.
    """

    name: Literal["fedftg_as_released"]  # type: ignore[assignment]


#: What generates images in the rounds, beside the students that learn from them.
RoundGenerator = ByName[FedFtg | FedFtgAsReleased]
