"""Ensembles, which teach or are scored, and students."""

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
from fedstage.settings.traits import Lacks, Needs, Trait


class Ensemble(Choice):
    """An ensemble of models, which averages its members' logits or probabilities.

    `members` are the kinds of models that it has of each round and group.
    """

    room: ClassVar[str] = "algorithm.ensemble_trainers"
    functions: ClassVar[Functions] = {"shares": ("settings", "members")}
    members: ClassVar[tuple[str, ...]] = ("aggregated",)
    average: Literal["logits", "probabilities"] = "logits"
    """What of its members an ensemble averages."""


class Clients(Ensemble):
    """All client models of the round, of all groups."""

    members: ClassVar[tuple[str, ...]] = ("clients",)
    lacks: ClassVar[Lacks] = dict.fromkeys(("weights", "average"), ("", Trait.UNIFORM))
    name: Literal["clients"]
    weights: Literal["uniform", "samples", "confidence"] = "uniform"
    """They weigh the same, in proportion to their training samples, or for each image by the
    variance of their probabilities (`confidence`, Fed-ET).
    """


class PublicGenerator(Settings):
    """The generator that the server trains on its public images and all clients receive.

    It is trained against a discriminator of as many channels.
    """

    latent: Width = 100
    """Dimensions of its input."""
    width: Width = 64
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
    """What each client trains once to tell its own images from generated ones.

    It has three convolutions.
    """

    width: Width = 32
    """Channels of the first convolution; the others have twice and four times as many."""
    epochs: Positive = 30
    """Epochs over a client's images."""
    batch_size: Positive = 64
    """Images of a batch."""
    learning_rate: Rate = 0.0002
    """Rate of Adam."""
    beta1: Fraction = 0.5
    """Decay of Adam's mean of gradients."""


class Odds(Ensemble):
    """All client models of the round, each weighing by the odds that an image is its client's.

    As in FedGO. It teaches on public images only, of which the odds are known.
    """

    members: ClassVar[tuple[str, ...]] = ("clients",)
    needs: ClassVar[Needs] = {"name": (Trait.IMAGES,)}
    lacks: ClassVar[Lacks] = {
        "name": (
            "whose odds are of public images as they are",
            Trait.CLIENTS,
            Trait.UNIFORM,
            Trait.LIVE,
            Trait.NOISY,
        )
    }
    name: Literal["odds"]
    generator: PublicGenerator = PublicGenerator()
    """What clients' discriminators tell their own images from."""
    discriminator: Discriminator = Discriminator()
    """What each client trains once, before round 1."""


class Aggregated(Ensemble):
    """The K averaged models of the last rounds (temporal ensembling)."""

    lacks: ClassVar[Lacks] = {"name": ("", Trait.CLIENTS, Trait.UNIFORM)}
    name: Literal["aggregated"]
    checkpoints: Positive = 1
    """How many rounds."""


class Bayesian(Ensemble):
    """FedBE: the clients' models, the averaged one, and models drawn from their distribution."""

    uses: ClassVar[Mapping[str, str]] = {"name": "algorithm.ensemble_trainers.sampling.draw"}
    members: ClassVar[tuple[str, ...]] = ("aggregated", "clients")  # and those that are drawn
    lacks: ClassVar[Lacks] = {
        "name": ("whose members are drawn as logits", Trait.CLIENTS, Trait.UNIFORM, Trait.MODELS)
    }
    name: Literal["bayesian"]
    distribution: Literal["gaussian", "dirichlet"] = "gaussian"
    """The distribution of models."""
    samples: Positive = 10
    """Models that are drawn."""
    variant: Literal["as_published", "as_released"] = "as_published"
    """The Gaussian of the paper, or of the released code."""
    concentration: Rate = 1.0
    """Concentration of the Dirichlet distribution of the clients' shares."""

    def _faults(self) -> Iterator[str]:
        if self.distribution == "gaussian" and self.concentration != 1.0:
            yield f"concentration = {self.concentration}: only for distribution = dirichlet"
        if self.distribution == "dirichlet" and self.variant != "as_published":
            yield f"variant = {self.variant!r}: only for distribution = gaussian"


_Ensembles = Clients | Aggregated | Bayesian
EnsembleTrainer = ByName[_Ensembles | Odds]


class Distilling(Settings):
    """What trainers of global models have in common: students."""

    needs: ClassVar[Needs] = {"name": (Trait.SERVER, Trait.ENSEMBLE, Trait.DISTILLED)}
    lacks: ClassVar[Lacks] = {
        "name": ("whose students are trained further", Trait.ONLY_AVERAGED),
        "starts_from": ("which averages nobody", Trait.PLAIN_AVERAGE),
    }
    warm_up: Count = 0
    """The first rounds, which have no students."""
    starts_from: Literal["aggregated", "previous"] = "aggregated"
    """A student starts from its group's aggregated model of the round or from the previous global
    model, so that what participants have trained teaches only.
    """


class Basic(Distilling):
    """Every global model is a student."""

    needs: ClassVar[Needs] = {"name": (Trait.SHARED,)}
    name: Literal["basic"]


class Designated(Distilling):
    """Only the main model is a student, so that the others stay diverse."""

    name: Literal["designated"]
    main: Literal["first", "per_architecture"] = "first"
    """Group 0's model, or the model of each architecture's first group."""


GlobalTrainer = ByName[Basic | Designated]


class GlobalModel(Settings):
    """Evaluate w*_{t,0}, the main global model."""

    name: Literal["global_model"]


class OneByOne(Settings):
    """Evaluate a round's models of these kinds one by one: every score is their mean."""

    members: ClassVar[tuple[str, ...]] = ("clients",)
    name: str


class EachClient(OneByOne):
    """Evaluate the participants' models."""

    name: Literal["each_client"]


class SplitModel(OneByOne):
    """Evaluate the server's model behind the extractor of each participant."""

    members: ClassVar[tuple[str, ...]] = ("split",)
    name: Literal["split_model"]


Evaluated = ByName[GlobalModel | EachClient | SplitModel | _Ensembles]
