"""Aggregators, which combine clients' models in one-shot learning, and how they are trained."""

from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from fedstage.settings.aggregation import ServerAdam, ServerOptimiser
from fedstage.settings.base import (
    ByName,
    Choice,
    Count,
    Functions,
    NonNegative,
    Positive,
    Rate,
    Settings,
    Share,
    Width,
)
from fedstage.settings.secure import SecureAggregation
from fedstage.settings.traits import Needs, Trait


class AggregationRule(Choice):
    """A rule that combines clients' models.

    It may be `trained` by gradient descent, `fitted` to the clients' samples of role `aggregator`,
    and may need the images themselves (`sees_images`), not only the logits of clients' models; of
    these it has the logits of the classes, or all outputs (`sees_all_outputs`).
    """

    room: ClassVar[str] = "algorithm.one_shot.aggregators"
    functions: ClassVar[Functions] = {
        "parameters": ("settings", "known", "generator"),
        "combine": ("settings", "parameters", "logits", "pixels"),
    }
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
    """Each class of a client's logits weighted by its share of that class's samples (FedKD)."""

    name: Literal["weighted"]
    unheld: Literal["mean", "zero"] = "mean"
    """The logit of a class that no client has: the mean over clients, or 0."""


class Confidence(AggregationRule):
    """Probabilities weighted, sample by sample, by their variance over classes (Fed-ET)."""

    name: Literal["confidence"]


class LeastUnknown(AggregationRule):
    """Probabilities; a client weighs less the more a sample is unknown to it (FedOV)."""

    sees_all_outputs: ClassVar[bool] = True
    name: Literal["least_unknown"]
    voters: Positive | None = None
    """Only so many clients vote, to which a sample is least unknown; by default all."""


class FusedFeatures(AggregationRule):
    """Features of all clients, fused, against the mean of their prototypes (FAFI)."""

    sees_all_outputs: ClassVar[bool] = True
    name: Literal["fused_features"]
    weights: Literal["samples", "uniform"] = "samples"
    """Clients weigh in proportion to their training samples, or the same."""


class Linear(TrainedRule):
    """One trained weight a client."""

    name: Literal["linear"]
    variant: Literal["as_published", "as_released"] = "as_published"
    """As released, there is a bias for all classes, and all numbers start at 1."""


class Simplex(TrainedRule):
    """Probabilities mixed by a weight for each client, none negative, which sum to 1 (FedBoost)."""

    trained_by: ClassVar[tuple[str, ...]] = ("mirror_descent",)
    name: Literal["simplex"]


class PerClass(TrainedRule):
    """One trained weight a client and class."""

    name: Literal["per_class"]


class Mlp(TrainedRule):
    """A network with one hidden layer on all clients' logits."""

    name: Literal["mlp"]
    hidden: Width = 40
    """Units of the hidden layer."""
    biases: bool = False
    """Whether the layers have biases; the paper's equation has none."""


class Voting(AggregationRule):
    """The decision of highest expected benefit, given how often clients vote for each class."""

    fitted: ClassVar[bool] = True
    name: Literal["voting"]
    estimate: Literal["smoothed", "as_published", "as_released"] = "smoothed"
    """How votes that never occurred count: ``smoothed``; ``as_published``, as impossible;
    ``as_released``, as impossible only where the class was seen.
    """
    smoothing: Rate = 1.0
    """What ``smoothed`` adds to each count."""
    prior: (
        Literal["uniform", "counted"]
        | Annotated[tuple[Rate, ...], Field(strict=False, min_length=2)]
    ) = "uniform"
    """Probabilities of the classes: equal, ``counted``, or a list."""
    benefit: (
        Annotated[
            tuple[Annotated[tuple[NonNegative, ...], Field(strict=False)], ...],
            Field(strict=False, min_length=2),
        ]
        | None
    ) = None
    """A row for each decision and a column for each true class; by default 1 for a right decision
    and 0 for a wrong one.
    """

    def _faults(self) -> Iterator[str]:
        wrong = [row for row in self.benefit or () if len(row) != len(self.benefit or ())]
        if wrong:
            yield (
                f"benefit: a row of {len(wrong[0])} of {len(self.benefit or ())} rows: must be a "
                "row and a column for each class"
            )


class Moe(TrainedRule):
    """Mixture of experts: a trained network weights the clients by the image.

    It has two blocks of a convolution and 2x2 max-pooling, two linear layers, and one output per
    client. The defaults are LeNet-5's, as in the released code.
    """

    sees_images: ClassVar[bool] = True
    needs: ClassVar[Needs] = {"name": (Trait.IMAGES,)}
    name: Literal["moe"]
    channels: Annotated[tuple[Width, Width], Field(strict=False)] = (6, 16)
    """Channels of the two convolutions."""
    kernel: Width = 5
    """Side of the convolutions' kernels."""
    padding: Count = 0
    """Padding of the convolutions."""
    hidden: Annotated[tuple[Width, Width], Field(strict=False)] = (120, 84)
    """Units of the two linear layers."""
    output: Literal["softmax", "sigmoid"] = "softmax"
    """What makes weights of the outputs."""


_Unfitted = Averaging | Weighted | Confidence | LeastUnknown | FusedFeatures
Aggregator = ByName[_Unfitted | Linear | Simplex | PerClass | Mlp | Voting | Moe]


class AggregatorStopping(Settings):
    """Stop early, by the accuracy on the clients' validation samples."""

    every: Positive = 10
    """Accuracy is measured after so many rounds (steps) each."""
    patience: Positive = 100
    """Stop after so many rounds (steps) without a better accuracy."""
    on: Literal["validation"] = "validation"
    """The samples that decide."""


class TrainingOfAggregators(Choice):
    """How an aggregator is trained.

    Its participants may have all members from the start, or each round fetch those that they need.
    """

    fetches: ClassVar[bool] = False
    room: ClassVar[str] = "algorithm.one_shot.aggregator_training"
    functions: ClassVar[Functions] = {"train": ("settings", "task")}


class FederatedRounds(TrainingOfAggregators):
    """FENS's phase 2: the clients train the aggregator in rounds, on their aggregator samples.

    The server moves the aggregator by the participants' average change.
    """

    uses: ClassVar[Mapping[str, str]] = {
        "secure": "algorithm.one_shot.aggregator_training.secure_change"
    }
    name: Literal["federated"]
    rounds: Positive
    """Rounds of training."""
    participants: Positive | None = None
    """Participants of a round, by default all clients."""
    steps: Positive = 1
    """Gradient steps of a participant, from the server's aggregator."""
    batch_size: Positive = 128
    """Samples of a step."""
    learning_rate: Rate = 1.0
    """Rate of participants' steps."""
    server_optimizer: ServerOptimiser = ServerAdam(name="adam", learning_rate=0.001)
    """How the server moves the aggregator by the average change."""
    weights: Literal["uniform", "samples"] = "uniform"
    """Changes weigh the same, or in proportion to aggregator samples."""
    early_stopping: AggregatorStopping | None = None
    """Stop by the clients' validation samples."""
    secure: SecureAggregation | None = None
    """The server gets the sum of the participants' changes of the aggregator, and no single one.
    Nothing else is protected: clients send their models, and receive all others.
    """

    def _faults(self) -> Iterator[str]:
        if self.secure is not None and self.early_stopping is not None:
            yield (
                "early_stopping: must be null with secure, because each client sends how many of "
                "its validation samples are right"
            )


class ProxySet(TrainingOfAggregators):
    """The server trains the aggregator alone, on its labelled set (`data.server_validation`)."""

    name: Literal["proxy"]
    steps: Positive
    """Steps of training."""
    batch_size: Positive = 128
    """Samples of a step."""
    optimiser: Literal["sgd", "adam"] = "adam"
    """The optimiser."""
    learning_rate: Rate = 0.001
    """Its rate."""
    early_stopping: AggregatorStopping | None = None
    """Stop by the clients' validation samples."""


class MirrorDescent(TrainingOfAggregators):
    """FedBoost: each round moves the weights of an ensemble by the gradient over some members."""

    fetches: ClassVar[bool] = True
    name: Literal["mirror_descent"]
    rounds: Positive
    """Rounds of training."""
    participants: Positive | None = None
    """Participants of a round, by default all clients."""
    predictors: Positive | None = None
    """Members that each participant has, by default all."""
    sampling: Literal["uniform", "weights"] = "uniform"
    """Members are drawn with equal chances, or by their weights."""
    least: Share = 0.1
    """No member's chance is less than this share of an equal chance."""
    learning_rate: Rate = 0.1
    """Rate of the weights' steps."""
    weights: Literal["uniform", "samples"] = "samples"
    """Gradients weigh the same, or in proportion to aggregator samples."""
    early_stopping: AggregatorStopping | None = None
    """Stop by the clients' validation samples."""


AggregatorTraining = ByName[FederatedRounds | ProxySet | MirrorDescent]
