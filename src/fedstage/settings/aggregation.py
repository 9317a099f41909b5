"""How clients' models become global models."""

from collections.abc import Iterator, Mapping
from typing import ClassVar, Literal

from fedstage.settings.base import ByName, Choice, Fraction, Functions, NonNegative, Rate, Settings
from fedstage.settings.model_rules import ServerRule, WeightedAverage
from fedstage.settings.secure import SecureAggregation
from fedstage.settings.traits import Lacks, Needs, Trait


class ServerStep(Choice):
    """How the server moves the model by the mean change of a round."""

    room: ClassVar[str] = "algorithm.aggregation.server_optimizers"
    functions: ClassVar[Functions] = {"step": ("settings", "weights", "change", "state")}


class ServerMomentum(ServerStep):
    """FedAvgM (Hsu et al. 2019)."""

    lacks: ClassVar[Lacks] = {"name": ("for which it must be average", Trait.PLAIN_AVERAGE)}
    name: Literal["momentum"]
    learning_rate: Rate = 1.0
    """Rate of the server's steps."""
    beta: Fraction = 0.9
    """Momentum."""
    form: Literal["heavy_ball", "damped", "nesterov"] = "heavy_ball"
    """Heavy ball, with `damped` new terms, or Nesterov's."""


class ServerAverage(ServerStep):
    """No optimiser on the server: the participants' mean."""

    name: Literal["average"]


class Adaptive(ServerStep):
    """Settings shared by Adam and Yogi on the server (Reddi et al. 2021)."""

    lacks: ClassVar[Lacks] = {"name": ("for which it must be average", Trait.PLAIN_AVERAGE)}
    learning_rate: Rate = 0.01
    """Rate of the server's steps."""
    beta1: Fraction = 0.9
    """Decay of the mean of changes, m."""
    beta2: Fraction = 0.99
    """Decay of the mean of squared changes, v."""
    epsilon: Rate = 0.001
    """What is added to the denominator of a step."""
    epsilon_in_root: bool = False
    """Steps are m / sqrt(v + epsilon) and not m / (sqrt(v) + epsilon)."""
    bias_correction: bool = False
    """Correct the means for their start at 0, as Kingma and Ba do."""
    v_start: Literal["zero", "epsilon_squared"] = "zero"
    """Start of v: 0, as in released code, or epsilon^2, as published."""

    def _faults(self) -> Iterator[str]:
        if self.bias_correction and self.v_start != "zero":
            yield (
                f"v_start = {self.v_start!r}: must be zero with bias_correction = true, which "
                "corrects for a start at zero"
            )


class ServerAdam(Adaptive):
    """FedAdam."""

    name: Literal["adam"]


class ServerYogi(Adaptive):
    """FedYogi."""

    name: Literal["yogi"]


ServerOptimiser = ByName[ServerAverage | ServerMomentum | ServerAdam | ServerYogi]


class ConstantDiscount(Settings):
    """Every update counts in full."""

    name: Literal["constant"]


class StaleDiscount(Choice):
    """How much an update counts that is stale."""

    room: ClassVar[str] = "algorithm.aggregation.discounts"
    functions: ClassVar[Functions] = {"factor": ("settings", "delay")}
    needs: ClassVar[Needs] = {"name": (Trait.AVERAGE,)}
    lacks: ClassVar[Lacks] = {"name": ("for which it must be constant", Trait.PLAIN_AVERAGE)}


class PolynomialDiscount(StaleDiscount):
    """s(d) = (1 + d)^-a (FedAsync, Xie et al. 2019)."""

    name: Literal["polynomial"]
    exponent: Rate = 0.5
    """a; FedBuff has 1 / 2."""


class HingeDiscount(StaleDiscount):
    """s(d) = 1 up to d = b, and 1 / (a (d - b) + 1) beyond (FedAsync)."""

    name: Literal["hinge"]
    a: Rate = 10.0
    """How fast the weight falls beyond `b`."""
    b: NonNegative = 4.0
    """The largest staleness that counts in full."""


Discount = ByName[ConstantDiscount | PolynomialDiscount | HingeDiscount]


class Aggregation(Settings):
    """The average over the participants of a group, or what a `rule` makes of their models."""

    uses: ClassVar[Mapping[str, str]] = {
        "rule": "algorithm.aggregation.rules",
        "secure": "algorithm.aggregation.secure",
    }
    needs: ClassVar[Needs] = {
        "stale": (Trait.AVERAGE,),
        "batch_norm": (Trait.WEIGHTS,),
        "batch_norm=re_estimate": (Trait.PRESENT,),
        "secure": (Trait.WEIGHTS, Trait.SUM, Trait.FIXED_GROUPS),
    }
    lacks: ClassVar[Lacks] = {
        "learning_rate": ("for which it must be 1", Trait.PLAIN_AVERAGE),
        "stale": ("for which it must be models", Trait.PLAIN_AVERAGE),
        "batch_norm": ("for which it must be average", Trait.PLAIN_AVERAGE),
        "batch_norm=local": ("which clients keep", Trait.MEMORYLESS, Trait.STATISTICS, Trait.SUM),
    }
    rule: ServerRule = WeightedAverage(name="average")
    """What the server takes in place of the average of the models."""
    weights: Literal["samples", "uniform"] = "samples"
    """Updates weigh in proportion to a client's training samples, or the same."""
    learning_rate: Rate = 1.0
    """The parameters move by so many times the mean change (eta_g of SCAFFOLD)."""
    server_optimizer: ServerOptimiser = ServerAverage(name="average")
    """Takes the mean change of a round as its gradient, with a rate of its own."""
    batch_norm: Literal["average", "local", "re_estimate"] = "average"
    """Running statistics of the new model: the clients' average; unchanged, while each client keeps
    its own (`local`); or re-estimated on the public images.
    """
    discount: Discount = ConstantDiscount(name="constant")
    """How much an update counts that is d rounds stale: s(d) times."""
    stale: Literal["models", "changes"] = "models"
    """Stale updates count as models (FedAsync), or as changes since the models that they started
    from (FedBuff).
    """
    secure: SecureAggregation | None = None
    """The server gets the sum of the updates, and no single one."""

    def _faults(self) -> Iterator[str]:
        if self.server_optimizer.name != "average" and self.learning_rate != 1.0:
            yield (
                f"learning_rate = {self.learning_rate}: must be 1 with server_optimizer = "
                f"{self.server_optimizer.name}, which has a learning_rate of its own"
            )
