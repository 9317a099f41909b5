"""What combines clients' models in one-shot federated learning, and how it is trained."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from fedstage.settings.aggregation import ServerAdam, ServerOptimiser
from fedstage.settings.base import BY_NAME, IN_SHORT, Count, NonNegative, Positive, Rate, Settings


class Averaging(Settings):
    """The mean of the clients' logits (FedENS)."""

    name: Literal["averaging"]


class Weighted(Settings):
    """Each class of a client's logits weighted by its share of that class's samples (FedKD).

    A class that no client has counts as `unheld` says: the mean over clients, or 0.
    """

    name: Literal["weighted"]
    unheld: Literal["mean", "zero"] = "mean"


class Confidence(Settings):
    """Probabilities weighted, sample by sample, by their variance over classes (Fed-ET)."""

    name: Literal["confidence"]


class Linear(Settings):
    """One trained weight a client; as released with a bias for all classes, and all from 1."""

    name: Literal["linear"]
    variant: Literal["as_published", "as_released"] = "as_published"


class PerClass(Settings):
    """One trained weight a client and class."""

    name: Literal["per_class"]


class Mlp(Settings):
    """A network of `hidden` units on all clients' logits; the paper's equation has no `biases`."""

    name: Literal["mlp"]
    hidden: Positive = 40
    biases: bool = False


class Voting(Settings):
    """The decision of highest expected benefit, by how often clients vote what for which class.

    `estimate` says what a vote is that was never counted: ``smoothed`` (with `smoothing` more of
    each vote), impossible (``as_published``), or so where the class itself was seen
    (``as_released``). `prior` of the classes may be ``counted``, or a list. `benefit` is a row a
    decision and a column a truth; without it, 1 for what is right and 0 for what is not.
    """

    name: Literal["voting"]
    estimate: Literal["smoothed", "as_published", "as_released"] = "smoothed"
    smoothing: Rate = 1.0
    prior: (
        Literal["uniform", "counted"]
        | Annotated[tuple[Rate, ...], Field(strict=False, min_length=2)]
    ) = "uniform"
    benefit: (
        Annotated[
            tuple[Annotated[tuple[NonNegative, ...], Field(strict=False)], ...],
            Field(strict=False, min_length=2),
        ]
        | None
    ) = None

    @model_validator(mode="after")
    def _square(self) -> "Voting":
        wrong = [row for row in self.benefit or () if len(row) != len(self.benefit or ())]
        if wrong:
            raise ValueError(
                f"benefit: a row of {len(wrong[0])} of {len(self.benefit or ())} rows: must be a "
                "row and a column for each class"
            )
        return self


class Moe(Settings):
    """Mixture of experts: a trained network that sees the image weighs the clients.

    Two blocks of a convolution and 2x2 max-pooling with `channels`, two linear layers of `hidden`
    units, and an output a client. The defaults are those of LeNet-5, as in the released code.
    """

    name: Literal["moe"]
    channels: Annotated[tuple[Positive, Positive], Field(strict=False)] = (6, 16)
    kernel: Positive = 5
    padding: Count = 0
    hidden: Annotated[tuple[Positive, Positive], Field(strict=False)] = (120, 84)
    output: Literal["softmax", "sigmoid"] = "softmax"


Aggregator = Annotated[
    Averaging | Weighted | Confidence | Linear | PerClass | Mlp | Voting | Moe, BY_NAME, IN_SHORT
]

#: Aggregators that are trained; of the others all is counted or given.
TRAINED_AGGREGATORS = ("linear", "per_class", "mlp", "moe")

#: Aggregators that read the clients' samples of role `aggregator`.
FITTED_AGGREGATORS = (*TRAINED_AGGREGATORS, "voting")


class AggregatorStopping(Settings):
    """Stop an aggregator after `patience` rounds (steps) without a better accuracy.

    It is measured after every `every`-th, on the clients' validation samples and on no others.
    """

    every: Positive = 10
    patience: Positive = 100
    on: Literal["validation"] = "validation"


class FederatedRounds(Settings):
    """FENS's phase 2: the clients train the aggregator in rounds, on their aggregator samples.

    Each of `participants` (by default all) takes `steps` steps of gradient descent from the
    server's aggregator; the server moves by the average of their changes, which `weights` weighs.
    """

    name: Literal["federated"]
    rounds: Positive
    participants: Positive | None = None
    steps: Positive = 1
    batch_size: Positive = 128
    learning_rate: Rate = 1.0
    server_optimizer: ServerOptimiser = ServerAdam(name="adam", learning_rate=0.001)
    weights: Literal["uniform", "samples"] = "uniform"
    early_stopping: AggregatorStopping | None = None


class ProxySet(Settings):
    """The server trains the aggregator alone, on its labelled set (`data.server_validation`)."""

    name: Literal["proxy"]
    steps: Positive
    batch_size: Positive = 128
    optimiser: Literal["sgd", "adam"] = "adam"
    learning_rate: Rate = 0.001
    early_stopping: AggregatorStopping | None = None


AggregatorTraining = Annotated[FederatedRounds | ProxySet, BY_NAME, IN_SHORT]
