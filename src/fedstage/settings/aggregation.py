"""How clients' models become global models."""

from collections.abc import Iterator, Mapping
from typing import ClassVar, Literal

from fedstage.settings.base import ByName, Choice, Fraction, NonNegative, Rate, Settings
from fedstage.settings.model_rules import ServerRule, WeightedAverage
from fedstage.settings.traits import Lacks, Needs, Trait


class ServerStep(Choice):
    """How the server moves the model by the mean change of a round."""

    room: ClassVar[str] = "algorithm.aggregation.server_optimizers"


class ServerMomentum(ServerStep):
    """FedAvgM (Hsu et al. 2019): heavy ball, with `damped` new terms, or Nesterov's."""

    lacks: ClassVar[Lacks] = {"name": ("for which it must be average", Trait.PLAIN_AVERAGE)}
    name: Literal["momentum"]
    learning_rate: Rate = 1.0
    beta: Fraction = 0.9
    form: Literal["heavy_ball", "damped", "nesterov"] = "heavy_ball"


class ServerAverage(ServerStep):
    """No optimiser on the server: the participants' mean."""

    name: Literal["average"]


class Adaptive(ServerStep):
    """Settings shared by Adam and Yogi on the server (Reddi et al. 2021).

    The step is m / (sqrt(v) + epsilon) or, with `epsilon_in_root`, m / sqrt(v + epsilon). v starts
    at 0, as in released code, or at epsilon^2, as published. `bias_correction` is Kingma and Ba's.
    """

    lacks: ClassVar[Lacks] = {"name": ("for which it must be average", Trait.PLAIN_AVERAGE)}
    learning_rate: Rate = 0.01
    beta1: Fraction = 0.9
    beta2: Fraction = 0.99
    epsilon: Rate = 0.001
    epsilon_in_root: bool = False
    bias_correction: bool = False
    v_start: Literal["zero", "epsilon_squared"] = "zero"

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
    needs: ClassVar[Needs] = {"name": (Trait.AVERAGE,)}
    lacks: ClassVar[Lacks] = {"name": ("for which it must be constant", Trait.PLAIN_AVERAGE)}


class PolynomialDiscount(StaleDiscount):
    """s(d) = (1 + d)^-a with a = `exponent` (FedAsync, Xie et al. 2019; FedBuff: 1 / 2)."""

    name: Literal["polynomial"]
    exponent: Rate = 0.5


class HingeDiscount(StaleDiscount):
    """s(d) = 1 up to d = `b`, and 1 / (`a` (d - b) + 1) beyond (FedAsync)."""

    name: Literal["hinge"]
    a: Rate = 10.0
    b: NonNegative = 4.0


Discount = ByName[ConstantDiscount | PolynomialDiscount | HingeDiscount]


class Aggregation(Settings):
    """The average over the participants of a group, or what a `rule` makes of their models.

    The parameters move by `learning_rate` (eta_g of SCAFFOLD) times the difference between the
    average and the model at the round's start. A `server_optimizer` other than ``average`` takes
    that difference as its gradient, with its own rate. `batch_norm` gives the new model's running
    statistics of batch normalisation: the clients' average; unchanged, while each client keeps its
    own (`local`); or re-estimated on the public images.

    An update that is d rounds stale counts s(d) times, by `discount`. Of `stale` updates the server
    takes the ``models`` as they are, as FedAsync does, or their ``changes`` since the model that
    they started from, as FedBuff does.
    """

    uses: ClassVar[Mapping[str, str]] = {"rule": "algorithm.aggregation.rules"}
    needs: ClassVar[Needs] = {
        "stale": (Trait.AVERAGE,),
        "batch_norm": (Trait.WEIGHTS,),
        "batch_norm=re_estimate": (Trait.PRESENT,),
    }
    lacks: ClassVar[Lacks] = {
        "learning_rate": ("for which it must be 1", Trait.PLAIN_AVERAGE),
        "stale": ("for which it must be models", Trait.PLAIN_AVERAGE),
        "batch_norm": ("for which it must be average", Trait.PLAIN_AVERAGE),
        "batch_norm=local": ("which clients keep", Trait.MEMORYLESS, Trait.STATISTICS),
    }
    rule: ServerRule = WeightedAverage(name="average")
    weights: Literal["samples", "uniform"] = "samples"
    learning_rate: Rate = 1.0
    server_optimizer: ServerOptimiser = ServerAverage(name="average")
    batch_norm: Literal["average", "local", "re_estimate"] = "average"
    discount: Discount = ConstantDiscount(name="constant")
    stale: Literal["models", "changes"] = "models"

    def _faults(self) -> Iterator[str]:
        if self.server_optimizer.name != "average" and self.learning_rate != 1.0:
            yield (
                f"learning_rate = {self.learning_rate}: must be 1 with server_optimizer = "
                f"{self.server_optimizer.name}, which has a learning_rate of its own"
            )
