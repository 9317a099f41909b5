"""Metrics of one model that all clients share, or of the models of single clients."""

from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean
from typing import Any

import torch

from fedstage.algorithm.measures.metrics import CLASS, OWN_MIX, spread
from fedstage.algorithm.measures.scores import (
    PERCENT,
    ClassCounts,
    Score,
    accuracies_on_own,
    accuracy_on_own,
    by_own_mix,
    count_own,
    disagreement,
    own_accuracies,
    score,
)
from fedstage.training.passes import class_accuracies

Row = dict[str, Any]


def model_metrics(
    logits: torch.Tensor,
    labels: torch.Tensor,
    counts: ClassCounts,
    owners: torch.Tensor | None = None,
    members: torch.Tensor | None = None,
) -> dict[str, Any]:
    """Return the scores of logits [n, classes] as columns of a metrics file.

    `owners` are the clients of the samples, if they are known: int64 [n], -1 for none. `members`
    are the classes that the members of an ensemble predict, int64 [members, n].
    """
    logits, labels = logits.cpu(), labels.cpu()
    result = score(logits, labels)
    own = None if owners is None else accuracies_on_own(logits, labels, owners)
    apart = gain = None
    if members is not None:
        members = members.cpu()
        apart = disagreement(members, logits.shape[1])
        gain = result.accuracy - PERCENT * int((members == labels).sum()) / members.numel()
    return {
        **result.columns,
        "samples": len(labels),
        "client_std": None,
        **_own_columns([result], counts, own),
        "disagreement": apart,
        "ensemble_gain": gain,
    }


def mean_metrics(
    models: Iterable[tuple[int | None, torch.Tensor]],
    labels: torch.Tensor,
    counts: ClassCounts,
    owners: torch.Tensor | None = None,
) -> dict[str, Any]:
    """Return the means of the scores of clients' models as columns of a metrics file.

    Parameters
    ----------
    models : iterable of (int, Tensor)
        Clients and the logits [n, classes] of their models: one model per client of `counts`, in
        the order of clients, or a single one. A model of client None is all clients' own.
    owners : Tensor, optional
        As in `model_metrics`: int64 [n].
    """
    scores, own = list[Score](), list[float]()
    for client, logits in models:
        scores.append(score(logits, labels))
        if owners is not None and client is None:
            own += accuracies_on_own(logits, labels, owners)
        elif owners is not None and client is not None:
            own += accuracy_on_own(logits, labels, owners, client)
    areas = [scored.auc for scored in scores if scored.auc is not None]
    errors = [scored.ece for scored in scores if scored.ece is not None]
    return {
        "top1_accuracy": fmean(scored.accuracy for scored in scores),
        "balanced_accuracy": fmean(scored.balanced_accuracy for scored in scores),
        "auc": fmean(areas) if len(areas) == len(scores) else None,
        "loss": fmean(scored.loss for scored in scores),
        "ece": fmean(errors) if len(errors) == len(scores) else None,
        "samples": len(labels),
        "client_std": spread([scored.accuracy for scored in scores]),
        "disagreement": None,
        "ensemble_gain": None,
        **_own_columns(scores, counts, None if owners is None else own),
    }


def _own_columns(
    scores: Sequence[Score], counts: ClassCounts, own: Sequence[float] | None
) -> dict[str, float | None]:
    """Return the accuracy on clients' own samples, or an estimate if these are unknown."""
    mix = own_accuracies(scores, counts) if own is None else []
    return {
        "own_test_mean": fmean(own) if own else None,
        "own_test_std": spread(own or []),
        "own_mean": fmean(mix) if mix else None,
        "own_std": spread(mix),
    }


# --- of each client and class ---------------------------------------------------------------------


def of_own(of: str, right: torch.Tensor, owners: torch.Tensor, clients: int) -> list[Row]:
    """Return the accuracy of each client on its own samples.

    Parameters
    ----------
    of : str
        What these samples are: `TEST` or `VALIDATION`.
    right : Tensor
        Whether the prediction of a sample is correct, bool [n].
    owners : Tensor
        The client of each sample, int64 [n]; samples of none of the `clients` do not count.
    """
    correct, samples = count_own(right, owners, clients)
    pairs = enumerate(zip(correct.tolist(), samples.tolist(), strict=True))
    return [_row(of, client, None, count, _share(own, count)) for client, (own, count) in pairs]


def of_classes(logits: torch.Tensor, labels: torch.Tensor) -> list[Row]:
    """Return the accuracy of each class that has any test samples, from [n, classes] and [n]."""
    right, samples = class_accuracies(logits, labels)
    return [
        _row(CLASS, None, label, int(own), _share(float(right[label]), int(own)))
        for label, own in enumerate(samples)
        if own
    ]


def of_mixes(score: Score, counts: ClassCounts) -> Iterator[Row]:
    """Yield the accuracy of each client on its own mix of classes: see `by_own_mix`."""
    for client, accuracy in by_own_mix(score, counts).items():
        yield _row(OWN_MIX, client, None, sum(counts[client].values()), accuracy)


def _share(right: float, samples: int) -> float | None:
    return PERCENT * (right / samples) if samples else None


def _row(
    of: str, client: int | None, label: int | None, samples: int, accuracy: float | None
) -> Row:
    return {"of": of, "client": client, "label": label, "samples": samples, "accuracy": accuracy}
