"""Losses of one-shot students: what they learn from an ensemble on public images."""

from typing import ClassVar, Literal

from fedstage.settings.base import ByName, Choice, NonNegative


class StudentLoss(Choice):
    """The loss with which a student learns from a one-shot ensemble."""

    room: ClassVar[str] = "algorithm.one_shot.transfers"


class KlTransfer(StudentLoss):
    """The Kullback-Leibler divergence to the teacher, with the temperature of `server`."""

    name: Literal["kl"]


class L1Transfer(StudentLoss):
    """The mean absolute difference to the teacher's logits (FedKD)."""

    name: Literal["l1"]


class FedEtTransfer(StudentLoss):
    """The teacher's class and, `diversity` times, the logits of dissenting clients (Fed-ET)."""

    name: Literal["fedet"]
    diversity: NonNegative = 0.05


Transfer = ByName[KlTransfer | L1Transfer | FedEtTransfer]
