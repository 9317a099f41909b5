"""The Kullback-Leibler divergence between predictions, given as logits."""

import torch
from torch import nn


def mean_divergence(teacher: torch.Tensor, student: torch.Tensor) -> torch.Tensor:
    """Return the mean over a batch of KL( sigma(teacher), sigma(student) ), both [b, classes]."""
    return nn.functional.kl_div(
        student.log_softmax(1), teacher.log_softmax(1), reduction="batchmean", log_target=True
    )


def each_divergence(teacher: torch.Tensor, student: torch.Tensor) -> torch.Tensor:
    """Return KL( sigma(teacher), sigma(student) ) of each sample, [b], of logits [b, classes]."""
    return nn.functional.kl_div(
        student.log_softmax(1), teacher.log_softmax(1), reduction="none", log_target=True
    ).sum(1)
