"""Aggregators, which combine clients' models in one-shot learning, and how they are trained."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from fedstage.settings.aggregation import SecureAggregation, ServerAdam, ServerOptimiser
from fedstage.settings.base import (
    ByName,
    Choice,
    Count,
    Functions,
    Positive,
    Rate,
    Width,
)


class Selection(Choice):
    """A selection of clients, whose models form the ensemble; other clients send no model.

    A selection that is `judged` reads the clients' validation samples.
    """

    room: ClassVar[str] = "algorithm.one_shot"
    functions: ClassVar[Functions] = {"choose": ("settings", "candidates", "generator")}
    judged: ClassVar[bool] = False
    count: Positive
    """Number of selected clients."""


class RandomMembers(Selection):
    """Clients drawn at random; a larger count includes all clients of a smaller one."""

    module: ClassVar[str] = "selections"
    name: Literal["random"]


class BestMembers(Selection):
    """The clients whose models are the most accurate on their own validation samples."""

    judged: ClassVar[bool] = True
    module: ClassVar[str] = "selections"
    name: Literal["best"]


class LargestMembers(Selection):
    """The clients with the most training samples."""

    module: ClassVar[str] = "selections"
    name: Literal["largest"]


Members = ByName[RandomMembers | BestMembers | LargestMembers]


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
    trained_by: ClassVar[tuple[str, ...]] = ("federated",)


class Averaging(AggregationRule):
    """The mean of the clients' logits (FedENS)."""

    module: ClassVar[str] = "weights"
    name: Literal["averaging"]


class Weighted(AggregationRule):
    """Logits of each class, weighted by the clients' shares of that class's samples (FedKD)."""

    module: ClassVar[str] = "weights"
    name: Literal["weighted"]


class Confidence(AggregationRule):
    """Clients' probabilities, weighted per sample by their variance over classes (Fed-ET)."""

    module: ClassVar[str] = "weights"
    name: Literal["confidence"]


class LeastUnknown(AggregationRule):
    """Clients' probabilities; a client weighs less the more unknown a sample is to it (FedOV)."""

    sees_all_outputs: ClassVar[bool] = True
    name: Literal["least_unknown"]


class FusedFeatures(AggregationRule):
    """Fused features of all clients, compared with the mean of their prototypes (FAFI)."""

    sees_all_outputs: ClassVar[bool] = True
    name: Literal["fused_features"]


class Linear(TrainedRule):
    """The sum of the clients' logits, with one trained weight per client."""

    module: ClassVar[str] = "weights"
    name: Literal["linear"]


class Simplex(TrainedRule):
    """Probabilities mixed with one non-negative weight per client; weights sum to 1 (FedBoost)."""

    module: ClassVar[str] = "weights"
    trained_by: ClassVar[tuple[str, ...]] = ("mirror_descent",)
    name: Literal["simplex"]


class PerClass(TrainedRule):
    """The sum of the clients' logits, with one trained weight per client and class."""

    module: ClassVar[str] = "weights"
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


class Moe(TrainedRule):
    """Mixture of experts: a trained network weights the clients according to the image.

    The network has two blocks of a convolution and 2x2 max-pooling, two linear layers, and one
    output per client. The defaults are LeNet-5's, as in the released code.
    """

    sees_images: ClassVar[bool] = True
    name: Literal["moe"]
    channels: Annotated[tuple[Width, Width], Field(strict=False)] = (6, 16)
    """Channels of the two convolutions."""
    kernel: Width = 5
    """Height and width of the convolutions' kernels, in pixels."""
    padding: Count = 0
    """Padding of the convolutions, in pixels."""
    hidden: Annotated[tuple[Width, Width], Field(strict=False)] = (120, 84)
    """Units of the two linear layers."""


_Unfitted = Averaging | Weighted | Confidence | LeastUnknown | FusedFeatures
Aggregator = ByName[_Unfitted | Linear | Simplex | PerClass | Mlp | Voting | Moe]


class TrainingOfAggregators(Choice):
    """How an aggregator is trained.

    Clients have all members from the start or, if the training `fetches`, get the members that they
    need in each round.
    """

    fetches: ClassVar[bool] = False
    room: ClassVar[str] = "algorithm.one_shot.aggregator_training"
    functions: ClassVar[Functions] = {"train": ("settings", "task")}


class FederatedRounds(TrainingOfAggregators):
    """Phase 2 of FENS: clients train the aggregator in rounds, on their aggregator samples.

    All clients take part. The server moves the aggregator by their average change.
    """

    uses: ClassVar[Mapping[str, str]] = {
        "secure": "algorithm.one_shot.aggregator_training.secure_change"
    }
    name: Literal["federated"]
    rounds: Positive
    """Number of rounds of training."""
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
    secure: SecureAggregation | None = None
    """Secure aggregation: the server gets the sum of the participants' changes of the aggregator,
    but no single change. Nothing else is protected: clients send their models, and receive all
    others. By default it is off.
    """


class MirrorDescent(TrainingOfAggregators):
    """FedBoost: each round moves an ensemble's weights by the gradient over some members."""

    fetches: ClassVar[bool] = True
    name: Literal["mirror_descent"]
    rounds: Positive
    """Number of rounds of training."""
    predictors: Positive | None = None
    """Number of members that each participant gets; by default all."""
    sampling: Literal["uniform", "weights"] = "uniform"
    """Whether members are drawn with equal chances, or in proportion to their weights."""
    learning_rate: Rate = 0.1
    """Learning rate of the ensemble's weights."""


AggregatorTraining = ByName[FederatedRounds | MirrorDescent]
