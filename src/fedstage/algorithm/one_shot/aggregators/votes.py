"""Counts of votes: what each client sends of its own samples, for rules that vote."""

import torch


def count(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Count the votes of all models on samples: int64 [M, C, C], vote by truth.

    Parameters
    ----------
    logits : torch.Tensor
        [M, n, C].
    labels : torch.Tensor
        int64 [n].
    """
    members, _, classes = logits.shape
    cells = logits.argmax(2) * classes + labels
    offsets = torch.arange(members, device=logits.device)[:, None] * classes**2
    counted = torch.bincount((cells + offsets).flatten(), minlength=members * classes**2)
    return counted.reshape(members, classes, classes).cpu()
