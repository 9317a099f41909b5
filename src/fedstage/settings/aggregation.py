"""How clients' models become global models."""

from typing import Annotated, Literal

from pydantic import model_validator

from fedstage.settings.base import BY_NAME, IN_SHORT, Fraction, Rate, Settings


class ServerAverage(Settings):
    """No optimiser on the server: the participants' mean."""

    name: Literal["average"]


class ServerMomentum(Settings):
    """FedAvgM (Hsu et al. 2019): heavy ball, with `damped` new terms, or Nesterov's."""

    name: Literal["momentum"]
    learning_rate: Rate = 1.0
    beta: Fraction = 0.9
    form: Literal["heavy_ball", "damped", "nesterov"] = "heavy_ball"


class Adaptive(Settings):
    """Settings that Adam and Yogi on the server share (Reddi et al. 2021).

    The step is m / (sqrt(v) + epsilon), or by `epsilon_in_root` m / sqrt(v + epsilon). v starts at
    0, as in released code, or at epsilon^2, as published. `bias_correction` is Kingma and Ba's.
    """

    learning_rate: Rate = 0.01
    beta1: Fraction = 0.9
    beta2: Fraction = 0.99
    epsilon: Rate = 0.001
    epsilon_in_root: bool = False
    bias_correction: bool = False
    v_start: Literal["zero", "epsilon_squared"] = "zero"

    @model_validator(mode="after")
    def _corrects_a_start_at_zero(self) -> "Adaptive":
        if self.bias_correction and self.v_start != "zero":
            raise ValueError(
                f"v_start = {self.v_start!r}: must be zero with bias_correction = true, which "
                "corrects for a start at zero"
            )
        return self


class ServerAdam(Adaptive):
    """FedAdam."""

    name: Literal["adam"]


class ServerYogi(Adaptive):
    """FedYogi."""

    name: Literal["yogi"]


ServerOptimiser = Annotated[
    ServerAverage | ServerMomentum | ServerAdam | ServerYogi, BY_NAME, IN_SHORT
]


class Aggregation(Settings):
    """The average over the participants of a group.

    The parameters go `learning_rate` times the way from the model that the round started from to
    the average: eta_g of SCAFFOLD. A `server_optimizer` other than ``average`` takes that way as
    its gradient, with a rate of its own. `batch_norm` says which running statistics of batch
    normalisation the new model has: the clients' average; those of the model that the round started
    from, while each client keeps its own (`local`); or new ones of the public images.
    """

    weights: Literal["samples", "uniform"] = "samples"
    learning_rate: Rate = 1.0
    server_optimizer: ServerOptimiser = ServerAverage(name="average")
    batch_norm: Literal["average", "local", "re_estimate"] = "average"

    @model_validator(mode="after")
    def _one_learning_rate(self) -> "Aggregation":
        if self.server_optimizer.name != "average" and self.learning_rate != 1.0:
            raise ValueError(
                f"learning_rate = {self.learning_rate}: must be 1 with server_optimizer = "
                f"{self.server_optimizer.name}, which has a learning_rate of its own"
            )
        return self
