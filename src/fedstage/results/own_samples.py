"""Accuracy of predictions on the evaluated samples that belong to a client."""

import torch

from fedstage.results.scores import PERCENT


def count_own(
    right: torch.Tensor, owners: torch.Tensor, clients: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the number of correctly predicted samples of each client, and of all its samples.

    Parameters
    ----------
    right : Tensor
        Whether the prediction of a sample is correct, bool [n].
    owners : Tensor
        The client of each sample, int64 [n]; samples of none of the `clients` do not count.

    Returns
    -------
    correct, samples : Tensor
        float64 and int64 [clients].
    """
    chosen = (owners >= 0) & (owners < clients)
    known, hits = owners[chosen], right[chosen].double()
    samples = torch.bincount(known, minlength=clients)
    correct = torch.zeros(clients, dtype=torch.float64).index_add_(0, known, hits)
    return correct, samples


def accuracies_on_own(
    logits: torch.Tensor, labels: torch.Tensor, owners: torch.Tensor
) -> list[float]:
    """Return the accuracy, in percent, on the own samples of each client that has any, in order.

    Parameters
    ----------
    logits, labels : Tensor
        Logits and labels of the evaluated samples, [n, classes] and int64 [n].
    owners : Tensor
        The client of each sample, int64 [n], -1 for none.
    """
    clients = max(owners.tolist(), default=-1) + 1
    correct, samples = count_own(logits.argmax(1) == labels, owners, clients)
    return (PERCENT * correct[samples > 0] / samples[samples > 0]).tolist()


def accuracy_on_own(
    logits: torch.Tensor, labels: torch.Tensor, owners: torch.Tensor, client: int
) -> list[float]:
    """Return `accuracies_on_own` for a single client: one accuracy or none."""
    mine = owners == client
    return accuracies_on_own(logits[mine], labels[mine], torch.zeros_like(owners[mine]))
