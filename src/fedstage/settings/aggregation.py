"""How clients' models become global models."""

from collections.abc import Iterator, Mapping
from typing import ClassVar, Literal

from fedstage.settings.base import ByName, Choice, Fraction, Functions, Rate, Settings
from fedstage.settings.model_rules import ServerRule, WeightedAverage
from fedstage.settings.secure import SecureAggregation
from fedstage.settings.traits import Lacks, Needs, Trait


class ServerStep(Choice):
    """How the server applies the mean change of a round to the model."""

    room: ClassVar[str] = "algorithm.aggregation.server_optimizers"
    functions: ClassVar[Functions] = {"step": ("settings", "weights", "change", "state")}


class ServerMomentum(ServerStep):
    """FedAvgM: heavy-ball momentum on the server (Hsu et al. 2019)."""

    lacks: ClassVar[Lacks] = {"name": ("for which it must be average", Trait.PLAIN_AVERAGE)}
    name: Literal["momentum"]
    learning_rate: Rate = 1.0
    """Learning rate of the server's steps."""
    beta: Fraction = 0.9
    """Momentum coefficient."""


class ServerAverage(ServerStep):
    """No optimiser on the server: the new model is the participants' mean."""

    name: Literal["average"]


class Adaptive(ServerStep):
    """Settings shared by Adam and Yogi on the server (Reddi et al. 2021)."""

    module: ClassVar[str] = "adaptive"
    lacks: ClassVar[Lacks] = {"name": ("for which it must be average", Trait.PLAIN_AVERAGE)}
    learning_rate: Rate = 0.01
    """Learning rate of the server's steps."""
    beta1: Fraction = 0.9
    """Decay rate of m, the running mean of changes."""
    beta2: Fraction = 0.99
    """Decay rate of v, the running mean of squared changes."""
    epsilon: Rate = 0.001
    """Constant added to the denominator of a step."""
    v_start: Literal["zero", "epsilon_squared"] = "zero"
    """Initial value of v: 0, as in released code, or epsilon^2, as published."""


class ServerAdam(Adaptive):
    """FedAdam: Adam on the server (Reddi et al. 2021)."""

    name: Literal["adam"]


class ServerYogi(Adaptive):
    """FedYogi: Yogi on the server (Reddi et al. 2021)."""

    name: Literal["yogi"]


ServerOptimiser = ByName[ServerAverage | ServerMomentum | ServerAdam | ServerYogi]


class ConstantDiscount(Settings):
    """Every update counts in full, however stale it is."""

    name: Literal["constant"]


class StaleDiscount(Choice):
    """How much a stale update counts."""

    room: ClassVar[str] = "algorithm.aggregation"
    functions: ClassVar[Functions] = {"factor": ("settings", "delay")}
    needs: ClassVar[Needs] = {"name": (Trait.AVERAGE,)}
    lacks: ClassVar[Lacks] = {"name": ("for which it must be constant", Trait.PLAIN_AVERAGE)}


class PolynomialDiscount(StaleDiscount):
    """An update of staleness d counts s(d) = (1 + d)^-a times (FedAsync, Xie et al. 2019)."""

    module: ClassVar[str] = "asynchronous"
    name: Literal["polynomial"]
    exponent: Rate = 0.5
    """Exponent a; FedBuff uses 1 / 2."""


Discount = ByName[ConstantDiscount | PolynomialDiscount]


class Aggregation(Settings):
    """How a group's models become one: their average, or the result of another `rule`."""

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
    """How the server combines the participants' models; by default it averages them."""
    weights: Literal["samples", "uniform"] = "samples"
    """Weights of clients' updates: in proportion to their training samples, or equal."""
    learning_rate: Rate = 1.0
    """Factor by which the mean change is multiplied before it is applied (eta_g of SCAFFOLD)."""
    server_optimizer: ServerOptimiser = ServerAverage(name="average")
    """Optimiser that takes the mean change of a round as its gradient, with its own learning rate;
    by default none.
    """
    batch_norm: Literal["average", "local", "re_estimate"] = "average"
    """Running statistics of the new model: the clients' average; unchanged, while each client keeps
    its own (`local`); or re-estimated on the public images.
    """
    discount: Discount = ConstantDiscount(name="constant")
    """How much an update that is d rounds stale counts: s(d) times; by default in full."""
    stale: Literal["models", "changes"] = "models"
    """Whether stale updates count as models (FedAsync), or as changes since the models that they
    started from (FedBuff).
    """
    secure: SecureAggregation | None = None
    """Secure aggregation: the server gets the sum of the updates, but no single update. By default
    it is off.
    """

    def _faults(self) -> Iterator[str]:
        if self.server_optimizer.name != "average" and self.learning_rate != 1.0:
            yield (
                f"learning_rate = {self.learning_rate}: must be 1 with server_optimizer = "
                f"{self.server_optimizer.name}, which has a learning_rate of its own"
            )
