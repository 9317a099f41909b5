"""Ensembles, which teach students or are evaluated, and the students."""

from collections.abc import Iterator, Mapping
from typing import ClassVar, Literal

from fedstage.settings.base import (
    ByName,
    Choice,
    Count,
    Fraction,
    Functions,
    Positive,
    Rate,
    Settings,
    Width,
)


class Ensemble(Choice):
    """An ensemble of models, which averages its members' logits or probabilities.

    `members` are the kinds of models that it takes from each round and group.
    """

    room: ClassVar[str] = "algorithm.ensemble_trainers"
    functions: ClassVar[Functions] = {"shares": ("settings", "members")}
    members: ClassVar[tuple[str, ...]] = ("aggregated",)
    average: Literal["logits", "probabilities", "median"] = "logits"
    """Whether the ensemble averages its members' logits or probabilities, or takes the elementwise
    median of logits, regardless of their weights.
    """


class Clients(Ensemble):
    """All clients' models of the round, from all groups."""

    members: ClassVar[tuple[str, ...]] = ("clients",)
    name: Literal["clients"]
    weights: Literal["uniform", "samples", "confidence"] = "uniform"
    """Weights of members: equal, in proportion to training samples, or for each image by the
    variance of their probabilities (`confidence`, Fed-ET).
    """


class PublicGenerator(Settings):
    """The generator that the server trains on its public images and sends to all clients.

    It is trained against a discriminator with as many channels.
    """

    latent: Width = 100
    """Dimension of the generator's input."""
    width: Width = 64
    """Channels of the generator."""
    steps: Positive = 2000
    """Number of batches for which the generator is trained."""
    batch_size: Positive = 64
    """Images per batch."""
    learning_rate: Rate = 0.0002
    """Learning rate of Adam."""
    beta1: Fraction = 0.5
    """Decay rate of Adam's mean of gradients."""


class Discriminator(Settings):
    """The network that each client trains once to tell its own images from generated ones.

    It has three convolutions.
    """

    width: Width = 32
    """Channels of the first convolution; the others have twice and four times as many."""
    epochs: Positive = 30
    """Epochs over the client's images."""
    batch_size: Positive = 64
    """Images per batch."""
    learning_rate: Rate = 0.0002
    """Learning rate of Adam."""
    beta1: Fraction = 0.5
    """Decay rate of Adam's mean of gradients."""


class Odds(Ensemble):
    """All clients' models of the round, weighted by the odds that an image is the client's (FedGO).

    This ensemble teaches only on public images, for which the odds are known.
    """

    members: ClassVar[tuple[str, ...]] = ("clients",)
    name: Literal["odds"]
    generator: PublicGenerator = PublicGenerator()
    """Generator of the images from which clients' discriminators tell their own."""
    discriminator: Discriminator = Discriminator()
    """Discriminator that each client trains once, before round 1."""


class Aggregated(Ensemble):
    """The K averaged models of each of the last rounds (temporal ensembling)."""

    name: Literal["aggregated"]
    checkpoints: Positive = 1
    """Number of last rounds whose models are members."""


class Bayesian(Ensemble):
    """FedBE: the clients' models, their average, and models drawn from their distribution."""

    module: ClassVar[str] = "aggregated"  # whose members weigh the same, too
    uses: ClassVar[Mapping[str, str]] = {"name": "algorithm.ensemble_trainers.sampling"}
    members: ClassVar[tuple[str, ...]] = ("aggregated", "clients")  # and the drawn ones
    name: Literal["bayesian"]
    distribution: Literal["gaussian", "dirichlet"] = "gaussian"
    """Distribution from which models are drawn."""
    samples: Positive = 10
    """Number of models drawn."""
    variant: Literal["as_published", "as_released"] = "as_published"
    """Whether the Gaussian distribution is as in the paper, or as in the released code."""

    def _faults(self) -> Iterator[str]:
        if self.distribution == "dirichlet" and self.variant != "as_published":
            yield f"variant = {self.variant!r}: only for distribution = gaussian"


_Ensembles = Clients | Aggregated | Bayesian
EnsembleTrainer = ByName[_Ensembles | Odds]


class Distilling(Settings):
    """What trainers of global models have in common: they train students."""

    warm_up: Count = 0
    """Number of initial rounds without students."""
    starts_from: Literal["aggregated", "previous"] = "aggregated"
    """Whether a student starts from its group's aggregated model of the round, or from the previous
    global model, so that the participants' models only teach.
    """


class Basic(Distilling):
    """Every global model is a student."""

    name: Literal["basic"]


class Designated(Distilling):
    """Only the main model is a student, so that the others stay diverse."""

    name: Literal["designated"]
    main: Literal["first", "per_architecture"] = "first"
    """Main models: group 0's model, or the model of each architecture's first group."""


GlobalTrainer = ByName[Basic | Designated]


class GlobalModel(Settings):
    """Evaluate w*_{t,0}, the main global model."""

    name: Literal["global_model"]


class OneByOne(Settings):
    """Evaluate a round's models of certain kinds one by one; every score is their mean."""

    members: ClassVar[tuple[str, ...]] = ("clients",)
    name: str


class EachClient(OneByOne):
    """Evaluate the participants' models one by one; every score is their mean."""

    name: Literal["each_client"]


class OwnModels(OneByOne):
    """Evaluate the models that participants predict with; every score is their mean.

    Such a model is the global one with the client's personal parts, or the client's own (Ditto).
    """

    members: ClassVar[tuple[str, ...]] = ("own",)
    name: Literal["own_models"]


class SplitModel(OneByOne):
    """Evaluate the server's model on the extractor of each participant; every score is the mean."""

    members: ClassVar[tuple[str, ...]] = ("split",)
    name: Literal["split_model"]


Evaluated = ByName[GlobalModel | EachClient | OwnModels | SplitModel | _Ensembles]
