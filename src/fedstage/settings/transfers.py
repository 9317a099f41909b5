"""Losses of students: what they learn from an ensemble on public images."""

from collections.abc import Iterator
from typing import ClassVar, Literal

from fedstage.settings.base import (
    ByName,
    Choice,
    Functions,
    NonNegative,
    Probability,
    Rate,
    Settings,
)

Teacher = Literal["ensemble", "labels", "moments"]


class StudentLoss(Choice):
    """The loss with which a student learns from an ensemble, in a round or in one shot.

    Its `teacher` may be the labels of the public samples instead, or moments of clients' features.
    `selects`: whether what the student learns depends on labels and on its own predictions.
    `diverges`: whether the loss is the divergence from the teacher, and no more.
    """

    room: ClassVar[str] = "algorithm.global_trainers.transfers"
    functions: ClassVar[Functions] = {
        "targets": ("settings", "teacher", "members"),
        "loss": ("settings", "server"),
    }
    teacher: ClassVar[Teacher] = "ensemble"
    selects: ClassVar[bool] = False
    diverges: ClassVar[bool] = False


class KlTransfer(StudentLoss):
    """The Kullback-Leibler divergence from the teacher, with the temperature of `server`."""

    diverges: ClassVar[bool] = True
    name: Literal["kl"]


class L1Transfer(StudentLoss):
    """The mean absolute difference from the teacher's logits (FedKD)."""

    module: ClassVar[str] = "plain"
    name: Literal["l1"]


class L2Transfer(StudentLoss):
    """The mean squared difference from the teacher's logits (Guha et al. 2019)."""

    module: ClassVar[str] = "plain"
    name: Literal["l2"]


class FedEtTransfer(StudentLoss):
    """The teacher's class and the predictions of dissenting clients (Fed-ET)."""

    name: Literal["fedet"]
    diversity: NonNegative = 0.05
    """Weight of the predictions of dissenting clients."""
    weights: Literal["confidence", "uniform"] = "confidence"
    """Weights of dissenting clients: by confidence, as in the consensus, or equal."""
    normalised_over: Literal["all", "dissenters"] = "all"
    """Whether weights sum to 1 over all members, as printed, or over the members that dissent on a
    sample.
    """


class EntropyReduction(StudentLoss):
    """The cross entropy with the teacher's probabilities, sharpened by a softmax (DS-FL)."""

    name: Literal["entropy_reduction"]
    temperature: Rate = 0.1
    """Temperature that divides probabilities, which are at most 1: 1 blurs them, 0.1 sharpens them.
    """


class FedGemsTransfer(StudentLoss):
    """Labels and, where the student is wrong, the teacher's probabilities (FedGEMS)."""

    selects: ClassVar[bool] = True
    name: Literal["fedgems"]
    epsilon: Probability = 0.75
    """Weight of the labels for samples that the student gets wrong; the divergence weighs 1 -
    epsilon.
    """


class LabelsTransfer(StudentLoss):
    """The cross entropy with the labels of the public samples, without ensemble (FedCVAE-Ens)."""

    module: ClassVar[str] = "plain"
    teacher: ClassVar[Teacher] = "labels"
    name: Literal["labels"]


class CotrainedTransfer(StudentLoss):
    """The loss of `kl` for a student that learns together with a generator of the server."""

    module: ClassVar[str] = "kl"
    name: Literal["cotrained"]


class Ridge(Settings):
    """Ridge regression of the classes' indicators on features (AFL)."""

    gamma: Rate = 1.0
    """What each client adds to the diagonal of its products of features."""
    clean: bool = True
    """Whether the server takes all of it away again, which leaves least squares."""


class ClosedForm(StudentLoss):
    """A last layer in closed form on fixed features, by default for Gaussian classes."""

    module: ClassVar[str] = "kl"  # not read: a separate stage computes the head
    teacher: ClassVar[Teacher] = "moments"
    name: Literal["closed_form"]
    covariance: Literal["full", "diagonal", "total"] = "full"
    """Covariance of features: within classes, full (linear discriminant analysis) or diagonal
    (naive Bayes), or total, of all samples (FedCGS).
    """
    shrinkage: Probability = 0.01
    """How far, from 0 to 1, the covariance is moved towards independent features of equal variance.
    """
    ridge: Ridge | None = None
    """Ridge regression in place of Gaussian classes; by default none."""

    def _faults(self) -> Iterator[str]:
        if self.ridge and self.covariance != "full":
            yield f"covariance = {self.covariance}: must be left out with ridge, which has none"


#: What a student learns, in rounds or in one shot.
_Transfers = KlTransfer | L1Transfer | L2Transfer | FedEtTransfer | EntropyReduction

#: What students learn in rounds, where labels may be added to an ensemble (`server.labels`).
Transfer = ByName[_Transfers | FedGemsTransfer]

#: What a one-shot student learns.
OneShotTransfer = ByName[_Transfers | LabelsTransfer | CotrainedTransfer | ClosedForm]
