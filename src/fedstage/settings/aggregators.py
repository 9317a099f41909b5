"""Aggregators, which combine clients' models in one-shot learning, and how they are trained."""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from fedstage.settings.aggregation import ServerAdam, ServerOptimiser
from fedstage.settings.base import ByName, Choice, Count, NonNegative, Positive, Rate, Settings
from fedstage.settings.traits import Needs, Trait


class AggregationRule(Choice):
    """A rule that combines clients' models.

    It may be `trained` by gradient descent, `fitted` to the clients' samples of role `aggregator`,
    and may need the images themselves (`sees_images`), not only the logits of clients' models; of
    these it has those of the classes, or all that models say (`sees_all_outputs`).
    """

    room: ClassVar[str] = "algorithm.one_shot.aggregators"
    trained: ClassVar[bool] = False
    fitted: ClassVar[bool] = False
    trained_by: ClassVar[tuple[str, ...]] = ()
    sees_images: ClassVar[bool] = False
    sees_all_outputs: ClassVar[bool] = False


class TrainedRule(AggregationRule):
    """A rule with trained parameters."""

    trained: ClassVar[bool] = True
    fitted: ClassVar[bool] = True
    trained_by: ClassVar[tuple[str, ...]] = ("federated", "proxy")


class Averaging(AggregationRule):
    """The mean of the clients' logits (FedENS)."""

    name: Literal["averaging"]


class Weighted(AggregationRule):
    """Each class of a client's logits weighted by its share of that class's samples (FedKD).

    `unheld` is the logit of a class that no client has: the mean over clients, or 0.
    """

    name: Literal["weighted"]
    unheld: Literal["mean", "zero"] = "mean"


class Confidence(AggregationRule):
    """Probabilities weighted, sample by sample, by their variance over classes (Fed-ET)."""

    name: Literal["confidence"]


class LeastUnknown(AggregationRule):
    """The sum of probabilities, in which a client has less the more a sample is unknown to it.

    Only the `voters` vote to which a sample is least unknown; by default all (FedOV).
    """

    sees_all_outputs: ClassVar[bool] = True
    name: Literal["least_unknown"]
    voters: Positive | None = None


class FusedFeatures(AggregationRule):
    """Features of all clients, fused by `weights`, against the mean of their prototypes (FAFI)."""

    sees_all_outputs: ClassVar[bool] = True
    name: Literal["fused_features"]
    weights: Literal["samples", "uniform"] = "samples"


class Linear(TrainedRule):
    """One trained weight a client; as released, with a bias for all classes, all starting at 1."""

    name: Literal["linear"]
    variant: Literal["as_published", "as_released"] = "as_published"


class Simplex(TrainedRule):
    """Probabilities mixed by a weight a client; none is negative, and they sum to 1 (FedBoost)."""

    trained_by: ClassVar[tuple[str, ...]] = ("mirror_descent",)
    name: Literal["simplex"]


class PerClass(TrainedRule):
    """One trained weight a client and class."""

    name: Literal["per_class"]


class Mlp(TrainedRule):
    """A network of `hidden` units on all clients' logits; the paper's equation has no `biases`."""

    name: Literal["mlp"]
    hidden: Positive = 40
    biases: bool = False


class Voting(AggregationRule):
    """The decision of highest expected benefit, given how often clients vote for each class.

    `estimate` treats votes that never occurred: ``smoothed`` adds `smoothing` to each count,
    ``as_published`` takes them as impossible, ``as_released`` only where the class was seen.
    `prior` of the classes may be ``counted``, or a list. `benefit` has a row for each decision and
    a column for each true class; by default 1 for a right decision and 0 for a wrong one.
    """

    fitted: ClassVar[bool] = True
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

    def _faults(self) -> Iterator[str]:
        wrong = [row for row in self.benefit or () if len(row) != len(self.benefit or ())]
        if wrong:
            yield (
                f"benefit: a row of {len(wrong[0])} of {len(self.benefit or ())} rows: must be a "
                "row and a column for each class"
            )


class Moe(TrainedRule):
    """Mixture of experts: a trained network weights the clients by the image.

    Two blocks of a convolution and 2x2 max-pooling with `channels`, two linear layers of `hidden`
    units, and one output a client. The defaults are LeNet-5's, as in the released code.
    """

    sees_images: ClassVar[bool] = True
    needs: ClassVar[Needs] = {"name": (Trait.IMAGES,)}
    name: Literal["moe"]
    channels: Annotated[tuple[Positive, Positive], Field(strict=False)] = (6, 16)
    kernel: Positive = 5
    padding: Count = 0
    hidden: Annotated[tuple[Positive, Positive], Field(strict=False)] = (120, 84)
    output: Literal["softmax", "sigmoid"] = "softmax"


Aggregator = ByName[
    Averaging
    | Weighted
    | Confidence
    | LeastUnknown
    | FusedFeatures
    | Linear
    | Simplex
    | PerClass
    | Mlp
    | Voting
    | Moe
]


class AggregatorStopping(Settings):
    """Stop after `patience` rounds (steps) without a better accuracy.

    It is measured after every `every`-th round, only on the clients' validation samples.
    """

    every: Positive = 10
    patience: Positive = 100
    on: Literal["validation"] = "validation"


class TrainingOfAggregators(Choice):
    """How an aggregator is trained.

    Its participants may have all members from the start, or each round fetch those that they need.
    """

    fetches: ClassVar[bool] = False
    room: ClassVar[str] = "algorithm.one_shot.aggregator_training"


class FederatedRounds(TrainingOfAggregators):
    """FENS's phase 2: the clients train the aggregator in rounds, on their aggregator samples.

    Each of `participants` (by default all) takes `steps` gradient steps from the server's
    aggregator; the server moves it by their average change, weighted by `weights`.
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


class ProxySet(TrainingOfAggregators):
    """The server trains the aggregator alone, on its labelled set (`data.server_validation`)."""

    name: Literal["proxy"]
    steps: Positive
    batch_size: Positive = 128
    optimiser: Literal["sgd", "adam"] = "adam"
    learning_rate: Rate = 0.001
    early_stopping: AggregatorStopping | None = None


class MirrorDescent(TrainingOfAggregators):
    """FedBoost: each round moves the weights of an ensemble by the gradient over some members.

    Each of `participants` (by default all) has so many `predictors` (by default all members), drawn
    for it with equal chances, or by the members' `weights`, but with no less than the `least` share
    of an equal chance. Participants' gradients are weighted by `weights`.
    """

    fetches: ClassVar[bool] = True
    name: Literal["mirror_descent"]
    rounds: Positive
    participants: Positive | None = None
    predictors: Positive | None = None
    sampling: Literal["uniform", "weights"] = "uniform"
    least: Annotated[float, Field(gt=0, le=1)] = 0.1
    learning_rate: Rate = 0.1
    weights: Literal["uniform", "samples"] = "samples"
    early_stopping: AggregatorStopping | None = None


AggregatorTraining = ByName[FederatedRounds | ProxySet | MirrorDescent]
