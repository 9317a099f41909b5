"""Ensembles, which teach or are scored, and students."""

from collections.abc import Iterator, Mapping
from typing import ClassVar, Literal

from fedstage.settings.base import ByName, Choice, Count, Positive, Rate, Settings
from fedstage.settings.odds import Discriminator, PublicGenerator
from fedstage.settings.traits import Lacks, Needs, Trait


class Ensemble(Choice):
    """An ensemble of models, which averages its members' logits or probabilities.

    `members` are the kinds of models that it has of each round and group.
    """

    room: ClassVar[str] = "algorithm.ensemble_trainers"
    members: ClassVar[tuple[str, ...]] = ("aggregated",)
    average: Literal["logits", "probabilities"] = "logits"


class Clients(Ensemble):
    """All client models of the round, of all groups.

    They weigh the same, in proportion to their training `samples`, or for each image by their
    `confidence`, the variance of their probabilities (Fed-ET).
    """

    members: ClassVar[tuple[str, ...]] = ("clients",)
    lacks: ClassVar[Lacks] = dict.fromkeys(("weights", "average"), ("", Trait.UNIFORM))
    name: Literal["clients"]
    weights: Literal["uniform", "samples", "confidence"] = "uniform"


class Odds(Ensemble):
    """All client models of the round, each weighing by the odds that an image is its client's.

    FedGO: each client trains a `discriminator` against a `generator` of the server's, once, before
    round 1. It teaches on public images only, of which the odds are known.
    """

    members: ClassVar[tuple[str, ...]] = ("clients",)
    needs: ClassVar[Needs] = {"name": (Trait.IMAGES,)}
    lacks: ClassVar[Lacks] = {
        "name": (
            "whose odds are of public images as they are",
            Trait.CLIENTS,
            Trait.UNIFORM,
            Trait.LIVE,
        )
    }
    name: Literal["odds"]
    generator: PublicGenerator = PublicGenerator()
    discriminator: Discriminator = Discriminator()


class Aggregated(Ensemble):
    """The K averaged models of the last `checkpoints` rounds (temporal ensembling)."""

    lacks: ClassVar[Lacks] = {"name": ("", Trait.CLIENTS, Trait.UNIFORM)}
    name: Literal["aggregated"]
    checkpoints: Positive = 1


class Bayesian(Ensemble):
    """FedBE: the clients' models, the averaged one, and `samples` drawn from their distribution.

    `variant` is the Gaussian of the paper, or that of the released code. `concentration` is of the
    Dirichlet distribution of the clients' shares.
    """

    uses: ClassVar[Mapping[str, str]] = {"name": "algorithm.ensemble_trainers.sampling.draw"}
    members: ClassVar[tuple[str, ...]] = ("aggregated", "clients")  # and those that are drawn
    lacks: ClassVar[Lacks] = {
        "name": ("whose members are drawn as logits", Trait.CLIENTS, Trait.UNIFORM, Trait.MODELS)
    }
    name: Literal["bayesian"]
    distribution: Literal["gaussian", "dirichlet"] = "gaussian"
    samples: Positive = 10
    variant: Literal["as_published", "as_released"] = "as_published"
    concentration: Rate = 1.0

    def _faults(self) -> Iterator[str]:
        if self.distribution == "gaussian" and self.concentration != 1.0:
            yield f"concentration = {self.concentration}: only for distribution = dirichlet"
        if self.distribution == "dirichlet" and self.variant != "as_published":
            yield f"variant = {self.variant!r}: only for distribution = gaussian"


_Ensembles = Clients | Aggregated | Bayesian
EnsembleTrainer = ByName[_Ensembles | Odds]


class Distilling(Settings):
    """What trainers of global models have in common: students, after `warm_up` rounds without.

    A student starts from its group's `aggregated` model of the round or from the `previous` global
    model, so that what participants have trained teaches only.
    """

    needs: ClassVar[Needs] = {"name": (Trait.SERVER, Trait.ENSEMBLE, Trait.DISTILLED)}
    lacks: ClassVar[Lacks] = {
        "name": ("whose students are trained further", Trait.ONLY_AVERAGED),
        "starts_from": ("which averages nobody", Trait.PLAIN_AVERAGE),
    }
    warm_up: Count = 0
    starts_from: Literal["aggregated", "previous"] = "aggregated"


class Basic(Distilling):
    """Every global model is a student."""

    needs: ClassVar[Needs] = {"name": (Trait.SHARED,)}
    name: Literal["basic"]


class Designated(Distilling):
    """Only the main model is a student, so that the others stay diverse.

    It is group 0's or, with `main` = ``per_architecture``, that of each architecture's first group.
    """

    name: Literal["designated"]
    main: Literal["first", "per_architecture"] = "first"


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
