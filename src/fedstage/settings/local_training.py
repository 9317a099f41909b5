"""How clients train, and how what they send is compressed."""

from typing import Annotated, Literal

from pydantic import model_validator

from fedstage.settings.base import BY_NAME, IN_SHORT, Fraction, NonNegative, Settings

#: Local trainers that keep state from round to round.
STATEFUL_TRAINERS = ("scaffold",)


class FedAvg(Settings):
    """Plain local training (McMahan et al. 2017)."""

    name: Literal["fedavg"]


class FedProx(Settings):
    """A proximal term mu/2 ||w - w_start||^2 (Li et al. 2020)."""

    name: Literal["fedprox"]
    mu: NonNegative = 0.001


class Scaffold(Settings):
    """Control variates (Karimireddy et al. 2020).

    A client's new variate is, by `option`, the gradient of all its data at the model that the round
    starts from (I), or the mean of its steps (II). `control` is kept for each global model, or
    shared by all of them. In the server's variate clients weigh alike, as published, or by their
    `samples`, as in FLamby's code.
    """

    name: Literal["scaffold"]
    option: Literal["I", "II"] = "II"
    control: Literal["per_model", "shared"] = "per_model"
    weights: Literal["uniform", "samples"] = "uniform"

    @model_validator(mode="after")
    def _weighs_clients_of_one_group(self) -> "Scaffold":
        if self.control == "shared" and self.weights != "uniform":
            raise ValueError(
                f"weights = {self.weights!r}: only for control = 'per_model', because no group "
                "knows the samples of the others"
            )
        return self


class FedNova(Settings):
    """Normalised averaging (Wang et al. 2020): steps in which clients differ do not count.

    The client's momentum is `client.momentum`, the global one `aggregation.server_optimizer` =
    ``momentum``.
    """

    name: Literal["fednova"]


LocalTrainer = Annotated[FedAvg | FedProx | Scaffold | FedNova, BY_NAME, IN_SHORT]


class Uncompressed(Settings):
    """Updates go as they are."""

    name: Literal["none"]


class Stc(Settings):
    """Sparse updates in few bits: what FENS calls FedAvg-STC.

    Of each tensor's change the share `sparsity` of the entries, the smallest, is left out, and the
    others are sent in `bits` bits. With `residuals` what was left out is added to the next change.
    `downstream` does the same to the change of the global model. `count` says whether bytes are
    those of values and positions, or of values only, as published.
    """

    name: Literal["stc"]
    sparsity: Fraction = 0.5
    bits: Literal[16, 32] = 16
    residuals: bool = True
    downstream: bool = True
    count: Literal["encoded", "published"] = "encoded"


Compression = Annotated[Uncompressed | Stc, BY_NAME, IN_SHORT]
