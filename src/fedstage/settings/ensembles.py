"""Which models teach and are scored, and which are students."""

from typing import Annotated, Literal

from pydantic import model_validator

from fedstage.settings.base import BY_NAME, IN_SHORT, Count, Positive, Rate, Settings


class Ensemble(Settings):
    """What is averaged over members: logits, or probabilities (after the softmax)."""

    average: Literal["logits", "probabilities"] = "logits"


class Clients(Ensemble):
    """All client models of the round, of all groups."""

    name: Literal["clients"]
    weights: Literal["uniform", "samples"] = "uniform"


class Aggregated(Ensemble):
    """The K averaged models of the last `checkpoints` rounds (temporal ensembling)."""

    name: Literal["aggregated"]
    checkpoints: Positive = 1


class Bayesian(Ensemble):
    """FedBE: the clients' models, the averaged one, and `samples` drawn from their distribution.

    `variant` is as the paper has the Gaussian, or as the released code does. `concentration` is
    that of the Dirichlet distribution of the clients' shares.
    """

    name: Literal["bayesian"]
    distribution: Literal["gaussian", "dirichlet"] = "gaussian"
    samples: Positive = 10
    variant: Literal["as_published", "as_released"] = "as_published"
    concentration: Rate = 1.0

    @model_validator(mode="after")
    def _fits_the_distribution(self) -> "Bayesian":
        if self.distribution == "gaussian" and self.concentration != 1.0:
            raise ValueError(
                f"concentration = {self.concentration}: only for distribution = dirichlet"
            )
        if self.distribution == "dirichlet" and self.variant != "as_published":
            raise ValueError(f"variant = {self.variant!r}: only for distribution = gaussian")
        return self


EnsembleTrainer = Annotated[Clients | Aggregated | Bayesian, BY_NAME, IN_SHORT]


class Basic(Settings):
    """Every global model is a student, after `warm_up` rounds without distillation."""

    name: Literal["basic"]
    warm_up: Count = 0


class Designated(Settings):
    """Only the main model is a student: the others stay diverse.

    It is that of group 0 or, where groups have different architectures, by choice that of the first
    group of each.
    """

    name: Literal["designated"]
    warm_up: Count = 0
    main: Literal["first", "per_architecture"] = "first"


GlobalTrainer = Annotated[Basic | Designated, BY_NAME, IN_SHORT]


class GlobalModel(Settings):
    """Evaluate w*_{t,0}, the main global model."""

    name: Literal["global_model"]


Evaluated = Annotated[GlobalModel | Clients | Aggregated | Bayesian, BY_NAME, IN_SHORT]
