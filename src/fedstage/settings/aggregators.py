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

    It may be `trained` by gradient descent, or `fitted` to the clients' samples of role
    `aggregator`. Its input is the clients' logits of the classes, or all outputs of their models
    (`sees_all_outputs`); it may also need the images themselves (`sees_images`).
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
    """Logits of each class, weighted by the clients' shares of that class's samples (FedKD)."""

    name: Literal["weighted"]
    unheld: Literal["mean", "zero"] = "mean"
    """Logit of a class that no client has: the mean over clients, or 0."""


class Confidence(AggregationRule):
    """Clients' probabilities, weighted per sample by their variance over classes (Fed-ET)."""

    name: Literal["confidence"]


class LeastUnknown(AggregationRule):
    """Clients' probabilities; a client weighs less the more unknown a sample is to it (FedOV)."""

    sees_all_outputs: ClassVar[bool] = True
    name: Literal["least_unknown"]
    voters: Positive | None = None
    """Number of clients that vote on a sample, the ones to which it is least unknown; by default
    all.
    """


class FusedFeatures(AggregationRule):
    """Fused features of all clients, compared with the mean of their prototypes (FAFI)."""

    sees_all_outputs: ClassVar[bool] = True
    name: Literal["fused_features"]
    weights: Literal["samples", "uniform"] = "samples"
    """Weights of clients: in proportion to their training samples, or equal."""


class Linear(TrainedRule):
    """The sum of the clients' logits, with one trained weight per client."""

    name: Literal["linear"]
    variant: Literal["as_published", "as_released"] = "as_published"
    """As published, or as released: with one bias for all classes, and all parameters starting at
    1.
    """


class Simplex(TrainedRule):
    """Probabilities mixed with one non-negative weight per client; weights sum to 1 (FedBoost)."""

    trained_by: ClassVar[tuple[str, ...]] = ("mirror_descent",)
    name: Literal["simplex"]


class PerClass(TrainedRule):
    """The sum of the clients' logits, with one trained weight per client and class."""

    name: Literal["per_class"]


class Mlp(TrainedRule):
    """A network with one hidden layer, whose input is all clients' logits."""

    name: Literal["mlp"]
    hidden: Width = 40
    """Number of units of the hidden layer."""
    biases: bool = False
    """Whether the layers have biases; the paper's equation has none."""


class Voting(AggregationRule):
    """The decision of highest expected benefit, given how often clients vote for each class."""

    fitted: ClassVar[bool] = True
    name: Literal["voting"]
    estimate: Literal["smoothed", "as_published", "as_released"] = "smoothed"
    """How votes that never occurred count: ``smoothed``, like a few votes (`smoothing`);
    ``as_published``, as impossible; ``as_released``, as impossible only where the class was seen.
    """
    smoothing: Rate = 1.0
    """Number added to each count with ``estimate = smoothed``."""
    prior: (
        Literal["uniform", "counted"]
        | Annotated[tuple[Rate, ...], Field(strict=False, min_length=2)]
    ) = "uniform"
    """Prior probabilities of the classes: equal, ``counted`` on the clients' samples, or a list."""
    benefit: (
        Annotated[
            tuple[Annotated[tuple[NonNegative, ...], Field(strict=False)], ...],
            Field(strict=False, min_length=2),
        ]
        | None
    ) = None
    """Benefit of each decision (row) for each true class (column); by default 1 for a right
    decision and 0 for a wrong one.
    """

    def _faults(self) -> Iterator[str]:
        wrong = [row for row in self.benefit or () if len(row) != len(self.benefit or ())]
        if wrong:
            yield (
                f"benefit: a row of {len(wrong[0])} of {len(self.benefit or ())} rows: must be a "
                "row and a column for each class"
            )


class Moe(TrainedRule):
    """Mixture of experts: a trained network weights the clients according to the image.

    The network has two blocks of a convolution and 2x2 max-pooling, two linear layers, and one
    output per client. The defaults are LeNet-5's, as in the released code.
    """

    sees_images: ClassVar[bool] = True
    needs: ClassVar[Needs] = {"name": (Trait.IMAGES,)}
    name: Literal["moe"]
    channels: Annotated[tuple[Width, Width], Field(strict=False)] = (6, 16)
    """Channels of the two convolutions."""
    kernel: Width = 5
    """Height and width of the convolutions' kernels, in pixels."""
    padding: Count = 0
    """Padding of the convolutions, in pixels."""
    hidden: Annotated[tuple[Width, Width], Field(strict=False)] = (120, 84)
    """Units of the two linear layers."""
    output: Literal["softmax", "sigmoid"] = "softmax"
    """Function that turns the outputs into weights."""


_Unfitted = Averaging | Weighted | Confidence | LeastUnknown | FusedFeatures
Aggregator = ByName[_Unfitted | Linear | Simplex | PerClass | Mlp | Voting | Moe]


class AggregatorStopping(Settings):
    """Early stopping by the accuracy on the clients' validation samples."""

    every: Positive = 10
    """Interval between measurements of accuracy, in rounds (steps)."""
    patience: Positive = 100
    """Number of rounds (steps) without a better accuracy after which training stops."""
    on: Literal["validation"] = "validation"
    """Samples on which accuracy is measured."""


class TrainingOfAggregators(Choice):
    """How an aggregator is trained.

    Participants have all members from the start or, if the training `fetches`, get the members that
    they need in each round.
    """

    fetches: ClassVar[bool] = False
    room: ClassVar[str] = "algorithm.one_shot.aggregator_training"
    functions: ClassVar[Functions] = {"train": ("settings", "task")}


class FederatedRounds(TrainingOfAggregators):
    """Phase 2 of FENS: clients train the aggregator in rounds, on their aggregator samples.

    The server moves the aggregator by the participants' average change.
    """

    uses: ClassVar[Mapping[str, str]] = {
        "secure": "algorithm.one_shot.aggregator_training.secure_change"
    }
    name: Literal["federated"]
    rounds: Positive
    """Number of rounds of training."""
    participants: Positive | None = None
    """Number of participants per round; by default all clients."""
    steps: Positive = 1
    """Gradient steps of a participant per round, starting from the server's aggregator."""
    batch_size: Positive = 128
    """Samples per step."""
    learning_rate: Rate = 1.0
    """Learning rate of participants' steps."""
    server_optimizer: ServerOptimiser = ServerAdam(name="adam", learning_rate=0.001)
    """How the server moves the aggregator by the average change."""
    weights: Literal["uniform", "samples"] = "uniform"
    """Weights of participants' changes: equal, or in proportion to their aggregator samples."""
    early_stopping: AggregatorStopping | None = None
    """Early stopping by the clients' validation samples; by default none."""
    secure: SecureAggregation | None = None
    """Secure aggregation: the server gets the sum of the participants' changes of the aggregator,
    but no single change. Nothing else is protected: clients send their models, and receive all
    others. By default it is off.
    """

    def _faults(self) -> Iterator[str]:
        if self.secure is not None and self.early_stopping is not None:
            yield (
                "early_stopping: must be null with secure, because each client sends how many of "
                "its validation samples are right"
            )


class ProxySet(TrainingOfAggregators):
    """The server alone trains the aggregator, on its labelled set (`data.server_validation`)."""

    name: Literal["proxy"]
    steps: Positive
    """Number of training steps."""
    batch_size: Positive = 128
    """Samples per step."""
    optimiser: Literal["sgd", "adam"] = "adam"
    """Optimiser of the training."""
    learning_rate: Rate = 0.001
    """Learning rate of the optimiser."""
    early_stopping: AggregatorStopping | None = None
    """Early stopping by the clients' validation samples; by default none."""


class MirrorDescent(TrainingOfAggregators):
    """FedBoost: each round moves an ensemble's weights by the gradient over some members."""

    fetches: ClassVar[bool] = True
    name: Literal["mirror_descent"]
    rounds: Positive
    """Number of rounds of training."""
    participants: Positive | None = None
    """Number of participants per round; by default all clients."""
    predictors: Positive | None = None
    """Number of members that each participant gets; by default all."""
    sampling: Literal["uniform", "weights"] = "uniform"
    """Whether members are drawn with equal chances, or in proportion to their weights."""
    least: Share = 0.1
    """Smallest chance of any member, as a share of an equal chance."""
    learning_rate: Rate = 0.1
    """Learning rate of the ensemble's weights."""
    weights: Literal["uniform", "samples"] = "samples"
    """Weights of participants' gradients: equal, or in proportion to their aggregator samples."""
    early_stopping: AggregatorStopping | None = None
    """Early stopping by the clients' validation samples; by default none."""


AggregatorTraining = ByName[FederatedRounds | ProxySet | MirrorDescent]
