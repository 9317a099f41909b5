"""How clients' models become global models."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from fedstage.protocol.groups import client_groups, fewest_models, group_participants
from fedstage.settings.base import (
    ByName,
    Choice,
    Count,
    Fraction,
    Functions,
    Positive,
    Probability,
    Rate,
    Settings,
)


class WeightedAverage(Settings):
    """The average of the participants' models, weighted by `weights`."""

    name: Literal["average"]


class ModelRule(Choice):
    """A rule that combines the models of all participants of a group into one."""

    room: ClassVar[str] = "algorithm.aggregation.rules"
    functions: ClassVar[Functions] = {"combine": ("settings", "models", "shares", "start")}


class Median(ModelRule):
    """The median of each parameter over the models (Yin et al. 2018)."""

    module: ClassVar[str] = "elementwise"
    name: Literal["median"]


class TrimmedMean(ModelRule):
    """The mean of each parameter without the largest and smallest values (Yin et al. 2018)."""

    module: ClassVar[str] = "elementwise"
    name: Literal["trimmed_mean"]
    trimmed: Positive = 1
    """Number of largest values that are left out, and of smallest values."""


class Krum(ModelRule):
    """The model that is nearest to its neighbours (Blanchard et al. 2017)."""

    name: Literal["krum"]
    faulty: Count = 1
    """Number f of models that may be arbitrary."""
    selected: Positive = 1
    """Number of best models whose mean is taken; more than 1 gives Multi-Krum."""


ServerRule = ByName[WeightedAverage | Median | TrimmedMean | Krum]


def check_number(recipe: Any, rule: ServerRule) -> Iterator[str]:
    """Yield a fault if a group has too few participants for the rule."""
    fewest = min(len(group_participants(recipe, group)) for group in client_groups(recipe))
    if fewest < (needed := fewest_models(rule)):
        yield f"aggregation.rule = {rule.name!r}: needs {needed} participants, not {fewest}"


#: Vectors consist of integers modulo this number.
MODULUS = 2**32


class Dropouts(Settings):
    """Shares of a round's participants that drop out, at random, before a step."""

    share: Probability = 0.0
    """Share that drops out before sending shares of secrets; these participants have advertised
    their keys.
    """
    masked_input: Probability = 0.0
    """Share that drops out after sending shares, without a masked vector; the server has to remove
    their masks.
    """
    unmask: Probability = 0.0
    """Share that drops out after sending a masked vector, which counts; these participants reveal
    no shares of others.
    """

    def _faults(self) -> Iterator[str]:
        total = self.share + self.masked_input + self.unmask
        if total > 1:
            yield f"share + masked_input + unmask = {total:g}: at most 1"


class SecureAggregation(Settings):
    """The protocol of Bonawitz et al. (2017) with one honest-but-curious server."""

    threshold: Annotated[int, Field(ge=2)]
    """Number of participants of a group that must answer each step, and number of shares that
    reveal a secret.
    """
    clip: Rate
    """Maximum absolute value to which each number of a change is clipped."""
    payload_clip: Rate | None = None
    """Maximum absolute value to which further numbers from clients are clipped, such as the changes
    of SCAFFOLD's control variates; null: `clip`.
    """
    bits: Annotated[int, Field(ge=1, le=31)] = 24
    """Number of bits: a clipped number becomes one of 2^bits integers."""
    most_samples: Positive
    """Maximum number of training samples of any client."""
    dropped: Dropouts = Dropouts()
    """Participants that drop out in the middle of a round; by default none."""


def faults_of_secure(
    secure: SecureAggregation, sizes: Sequence[int], setting: str = "aggregation.secure"
) -> Iterator[str]:
    """Yield settings that do not fit groups of these sizes.

    More than half must answer, so that a server cannot ask one half for the seed of a client and
    the other half for its mask key. Sums must stay below 2^32, so that they do not wrap.
    """
    most, fewest = max(sizes), min(sizes)
    if not most < 2 * secure.threshold <= 2 * fewest:
        yield (
            f"{setting}.threshold = {secure.threshold}: must be more than half of a "
            f"group's participants, and at most all: {most // 2 + 1} to {fewest}"
        )
    if most * (2**secure.bits - 1) >= MODULUS:
        yield (
            f"{setting}.bits = {secure.bits}: at most {(MODULUS // most).bit_length() - 1}"
            f" for {most} participants of a group, whose sum must be less than 2^32"
        )
    if most * secure.most_samples >= MODULUS:
        yield (
            f"{setting}.most_samples = {secure.most_samples}: at most "
            f"{(MODULUS - 1) // most} for {most} participants of a group, whose sum must be less "
            "than 2^32"
        )


class ServerStep(Choice):
    """How the server applies the mean change of a round to the model."""

    room: ClassVar[str] = "algorithm.aggregation.server_optimizers"
    functions: ClassVar[Functions] = {"step": ("settings", "weights", "change", "state")}


class ServerMomentum(ServerStep):
    """FedAvgM: heavy-ball momentum on the server (Hsu et al. 2019)."""

    name: Literal["momentum"]
    learning_rate: Rate = 1.0
    """Learning rate of the server's steps."""
    beta: Fraction = 0.9
    """Momentum coefficient."""


class ServerDrift(ServerStep):
    """The mean and, in addition, the mean of all clients' drifts (FedDyn, FedDC)."""

    functions: ClassVar[Functions] = {"step": (*ServerStep.functions["step"], "share")}
    name: Literal["drift"]


class ServerAverage(ServerStep):
    """No optimiser on the server: the new model is the participants' mean."""

    name: Literal["average"]


class Adaptive(ServerStep):
    """Settings shared by Adam and Yogi on the server (Reddi et al. 2021)."""

    module: ClassVar[str] = "adaptive"
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


ServerOptimiser = ByName[ServerAverage | ServerMomentum | ServerAdam | ServerYogi | ServerDrift]


class ConstantDiscount(Settings):
    """Every update counts in full, however stale it is."""

    name: Literal["constant"]


class StaleDiscount(Choice):
    """How much a stale update counts."""

    room: ClassVar[str] = "algorithm.aggregation"
    functions: ClassVar[Functions] = {"factor": ("settings", "delay")}


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
