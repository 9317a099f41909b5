"""The squared difference from the teacher's probabilities."""

from typing import Literal

from fedstage.settings.transfers import StudentLoss


class Brier(StudentLoss):
    """The Brier score against the teacher."""

    name: Literal["brier"]


def targets(settings, teacher, members):
    return teacher.softmax(1)


def loss(settings, server):
    def of_batch(logits, probabilities):
        return (logits.softmax(1) - probabilities).square().sum(1).mean()

    return of_batch
