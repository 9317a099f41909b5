"""How clients train, and how their updates are compressed.

One file because all alternatives can be read next to one another.
"""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator

from fedstage.settings.base import (
    ByName,
    Choice,
    Count,
    Fraction,
    NonNegative,
    Positive,
    Rate,
    Settings,
)
from fedstage.settings.models import Head, Parts

#: What clients send and learn from.
Exchanged = Literal["weights", "logits", "features", "prototypes"]


class LocalTraining(Choice):
    """How a participant trains.

    `keeps_state`: whether clients keep state between rounds. `shares_state`: whether the server
    learns something from the participants of all groups, which clients read in the next round.
    `exchanges`: what clients send and learn from, ``weights`` of models, ``logits`` on public data,
    ``features`` of their own samples, or ``prototypes``, which are payloads. `own_loss`: whether
    clients minimise another loss than `client.loss` of their logits. `needs_head`: whether that
    loss reads the representation of a model with a head; models without a head get `default_head`.
    `learns_from_past`: whether they learn from the last global models. `has_own_model`: whether
    each client also trains a model of its own, which is its state.
    """

    room: ClassVar[str] = "algorithm.local_trainers"
    functions: ClassVar[Mapping[str, tuple[str, ...]]] = {"Trainer": ("settings",)}
    declared: ClassVar[Mapping[str, str]] = {
        "next_state": "keeps_state",
        "objective": "own_loss",
        "shared": "shares_state",
        "own_term": "has_own_model",
    }
    keeps_state: ClassVar[bool] = False
    shares_state: ClassVar[bool] = False
    learns_from_past: ClassVar[bool] = False
    has_own_model: ClassVar[bool] = False
    exchanges: ClassVar[Exchanged] = "weights"
    own_loss: ClassVar[bool] = False
    needs_head: ClassVar[bool] = False
    default_head: ClassVar[Head] = Head()


class FedAvg(LocalTraining):
    """FedAvg: plain local training (McMahan et al. 2017)."""

    name: Literal["fedavg"]


class FedProx(LocalTraining):
    """FedProx: a proximal term mu/2 ||w - w_start||^2 in the loss (Li et al. 2020)."""

    name: Literal["fedprox"]
    mu: NonNegative = 0.001
    """Weight of the proximal term."""


class Ditto(LocalTraining):
    """Ditto: FedAvg, and a model of each client's own near the global one (Li et al. 2021)."""

    keeps_state: ClassVar[bool] = True
    has_own_model: ClassVar[bool] = True
    name: Literal["ditto"]
    strength: NonNegative = 1.0
    """Weight lambda of the term lambda/2 ||v - w_start||^2 in the loss of a client's model v."""


class Scaffold(LocalTraining):
    """SCAFFOLD: gradients corrected by control variates (Karimireddy et al. 2020)."""

    keeps_state: ClassVar[bool] = True
    name: Literal["scaffold"]
    weights: Literal["uniform", "samples"] = "uniform"
    """Weights of clients in the server's control variate: equal, as published, or by samples
    (FLamby).
    """


class FedDyn(LocalTraining):
    """FedDyn: each client's loss is regularised by its own drift (Acar et al. 2021)."""

    keeps_state: ClassVar[bool] = True
    name: Literal["feddyn"]
    alpha: Rate = 0.01
    """Weight of the distance from the starting model without the drift."""


class FedDc(Scaffold):
    """FedDC: SCAFFOLD whose clients also correct their drifts (Gao et al. 2022)."""

    name: Literal["feddc"]  # type: ignore[assignment]
    alpha: Rate = 0.01
    """Weight of the distance from the starting model without the drift."""


class FedNova(LocalTraining):
    """FedNova: normalised averaging, in which clients' numbers of steps cancel (Wang et al. 2020).

    The clients' momentum is `client.momentum`; the global momentum is
    `aggregation.server_optimizer` = ``momentum``.
    """

    name: Literal["fednova"]


class Moon(LocalTraining):
    """MOON: a contrastive loss on representations of the model's head (Li, He, Song 2021)."""

    keeps_state: ClassVar[bool] = True
    own_loss: ClassVar[bool] = True
    needs_head: ClassVar[bool] = True
    default_head: ClassVar[Head] = Head(hidden=128, width=256, relu=False)
    name: Literal["moon"]
    mu: NonNegative = 5.0
    """Weight of the contrastive loss."""
    temperature: Rate = 0.5
    """Temperature of the contrastive loss."""


class FedNtd(LocalTraining):
    """FedNTD: distillation of the classes other than the label (Lee et al. 2022)."""

    own_loss: ClassVar[bool] = True
    name: Literal["fedntd"]
    beta: NonNegative = 1.0
    """Weight of the distillation."""
    temperature: Rate = 1.0
    """Temperature of the distillation."""


class FedLc(LocalTraining):
    """FedLC: logits calibrated by n_c, the client's samples of each class (Zhang et al. 2022)."""

    own_loss: ClassVar[bool] = True
    name: Literal["fedlc"]
    tau: NonNegative = 1.0
    """Scale of the margins tau n_c^(-1/4)."""


class FedGkd(LocalTraining):
    """FedGKD: distillation from the last global models (Yao et al. 2023)."""

    own_loss: ClassVar[bool] = True
    learns_from_past: ClassVar[bool] = True
    name: Literal["fedgkd"]
    gamma: NonNegative = 0.2
    """Weight of the distillation, which counts gamma / 2 times."""
    models: Positive = 5
    """Number of last global models that teach."""
    teacher: Literal["mean", "vote"] = "mean"
    """Teacher: one model of their mean weights, or each model by itself, with a vote. Votes are a
    softmax of the models' negative losses on the server's validation set.
    """
    temperature: Rate = 1.0
    """Temperature of the divergence."""


class LabelCache(Settings):
    """Labels of public samples that are kept instead of requested again (SCARLET)."""

    duration: Positive = 50
    """Number of rounds for which a label serves: a label of round s serves until round s + duration
    - 1. Then clients are asked again; the new label serves once, as released.
    """


class Digest(LocalTraining):
    """Each client keeps its own model, and first learns from others' logits (FedMD, DS-FL).

    A client first digests the ensemble of the last round by the recipe's `distillation`, with the
    settings of `server`. Then it trains on its own samples. Only logits on public data are
    exchanged, no weights.
    """

    uses: ClassVar[Mapping[str, str]] = {
        "name": "algorithm.global_trainers.digestion",
        "cache": "algorithm.exchange.caching",
    }
    keeps_state: ClassVar[bool] = True
    exchanges: ClassVar[Exchanged] = "logits"
    name: Literal["digest"]
    cache: LabelCache | None = None
    """Labels that are kept, so that only logits without a kept label are sent; by default none."""
    teacher: Literal["clients", "server"] = "clients"
    """Whether clients learn from one another's logits, or from the server's model, which learns
    from clients (FedGEMS).
    """


class Gkt(LocalTraining):
    """Each client has a small model, and a large one on the server takes its features (FedGKT).

    The server's model trains on the features that clients' models give for their samples, with the
    settings of `server`. Client and server learn from the labels, and each from the other's logits.
    """

    uses: ClassVar[Mapping[str, str]] = {"name": "algorithm.global_trainers.features"}
    keeps_state: ClassVar[bool] = True
    exchanges: ClassVar[Exchanged] = "features"
    own_loss: ClassVar[bool] = True
    name: Literal["gkt"]
    alpha: NonNegative = 1.0
    """Weight of the server's logits on clients, and of the labels on the server."""
    temperature: Rate = 3.0
    """Temperature of the logits."""


class FedProto(LocalTraining):
    """FedProto: clients' features stay close to global prototypes of classes (Tan et al. 2022).

    Each client keeps its own model, of any architecture. The means of its features by class are all
    that it sends, and the global prototypes, their means, are all that it receives.
    """

    keeps_state: ClassVar[bool] = True
    shares_state: ClassVar[bool] = True
    exchanges: ClassVar[Exchanged] = "prototypes"
    own_loss: ClassVar[bool] = True
    needs_head: ClassVar[bool] = True
    name: Literal["fedproto"]
    weight: NonNegative = 1.0
    """Weight of the squared distance from the prototype of the label."""


class FedTgp(FedProto):
    """FedTGP: the server trains the global prototypes to be apart (Zhang et al. 2024)."""

    name: Literal["fedtgp"]  # type: ignore[assignment]
    steps: Positive = 1000
    """Steps of the server in each round, on all prototypes."""
    learning_rate: Rate = 0.01
    """Learning rate of the server."""
    margin: Rate = 100.0
    """Largest margin between classes."""


class FedGen(LocalTraining):
    """FedGen: clients also learn from features that a generator of the server makes (Zhu et al.).

    The generator's features have the class that it is given, by clients' classifiers.
    """

    keeps_state: ClassVar[bool] = True
    shares_state: ClassVar[bool] = True
    own_loss: ClassVar[bool] = True
    needs_head: ClassVar[bool] = True
    name: Literal["fedgen"]
    weight: NonNegative = 1.0
    """Weight of the cross entropy on generated features."""
    latent: Positive = 32
    """Dimension of the generator's noise."""
    hidden: Positive = 128
    """Dimension of the generator's hidden layer."""
    steps: Positive = 100
    """Steps of Adam that the generator takes in each round."""
    batch_size: Positive = 64
    """Features per batch of the generator."""
    learning_rate: Rate = 0.001
    """Learning rate of Adam."""


LocalTrainer = ByName[
    FedAvg
    | FedProx
    | Ditto
    | Scaffold
    | FedDyn
    | FedDc
    | FedNova
    | Moon
    | FedNtd
    | FedLc
    | FedGkd
    | Digest
    | Gkt
    | FedProto
    | FedTgp
    | FedGen
]


class Uncompressed(Settings):
    """Updates are sent uncompressed."""

    name: Literal["none"]


class Stc(Settings):
    """Sparse updates with few bits per number (FedAvg-STC in FENS), up and down.

    Dropped entries are added to the next change.
    """

    name: Literal["stc"]
    sparsity: Fraction = 0.5
    """Share of entries of each tensor's change that are dropped, the smallest first."""
    bits: Literal[16, 32] = 16
    """Bits per number that is sent."""


class Personal(Settings):
    """Parts of clients' models that stay with them from round to round (FedPer, FedBN)."""

    parts: Parts
    """Parts, as in `model.trainable`."""
    epochs: Count = 0
    """Number of epochs for which a round first trains them alone, and then only the others
    (FedRep); by default all are trained together.
    """


#: Without epochs, the parts alone are enough.
PersonalParts = Annotated[
    Personal,
    BeforeValidator(
        lambda given: {"parts": given} if isinstance(given, str | list) else given,
        json_schema_input_type=str | list[str] | Personal,
    ),
]

Compression = ByName[Uncompressed | Stc]
