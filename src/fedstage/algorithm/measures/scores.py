"""Scores of logits: on all samples, weighted by a client's mix of classes, or its own samples."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from fedstage.training.passes import class_accuracies, cross_entropy

PERCENT = 100.0
BINS = 15  # of confidence
ClassCounts = Mapping[int, Mapping[int, int]]  # client -> class -> samples


@dataclass(frozen=True)
class Score:
    """Top-1 accuracy, mean cross entropy, area under the ROC curve and calibration of one model.

    All but the loss are in percent. `by_class` is the accuracy of each class, float64 [classes],
    NaN for a class without samples; `auc` and `ece` are None where `area_under_curve` and
    `calibration_error` return None.
    """

    accuracy: float
    loss: float
    by_class: torch.Tensor
    auc: float | None
    ece: float | None

    @property
    def balanced_accuracy(self) -> float:
        """Mean accuracy of the classes that have samples, in percent."""
        return float(self.by_class.nanmean())

    @property
    def columns(self) -> dict[str, float | None]:
        """The values of one model for the columns of its metrics."""
        return {
            "top1_accuracy": self.accuracy,
            "balanced_accuracy": self.balanced_accuracy,
            "auc": self.auc,
            "loss": self.loss,
            "ece": self.ece,
        }


def score(logits: torch.Tensor, labels: torch.Tensor) -> Score:
    """Score logits [n, classes] against labels [n]."""
    right, samples = class_accuracies(logits, labels)
    accuracy = PERCENT * float(right.sum() / samples.sum())
    return Score(
        accuracy,
        cross_entropy(logits, labels),
        PERCENT * right / samples,
        area_under_curve(logits, labels),
        calibration_error(logits, labels),
    )


def area_under_curve(logits: torch.Tensor, labels: torch.Tensor) -> float | None:
    """Return the area under the ROC curve of logits [n, classes], in percent.

    For two classes it is the area of the second; for more, the mean over classes of the area of
    each against the rest, by its probability. The area is the probability that a sample of the
    class scores higher than another sample, with ties counted half, so it follows from ranks.
    scikit-learn gives the same, but importing it takes longer than the rest of an evaluation. None
    if a class has no samples, or if a logit is not finite.
    """
    classes = logits.shape[1]
    counts = torch.bincount(labels, minlength=classes)
    if not bool(logits.isfinite().all()) or bool((counts == 0).any()) or classes < 2:
        return None
    if classes == 2:
        scores = logits.double().diff(dim=1)
        return PERCENT * _area(scores[:, 0], labels == 1)
    odds = logits.double().softmax(1)
    areas = [_area(odds[:, label], labels == label) for label in range(classes)]
    return PERCENT * statistics.fmean(areas)


def _area(scores: torch.Tensor, positive: torch.Tensor) -> float:
    """Return (R - p (p + 1) / 2) / (p q): R the sum of the ranks of the p positives of p + q."""
    _, place, counts = scores.unique(return_inverse=True, return_counts=True)
    ranks = counts.cumsum(0) - (counts - 1) / 2  # the mean for ties
    p = int(positive.sum())
    q = len(scores) - p
    return (float(ranks[place][positive].double().sum()) - p * (p + 1) / 2) / (p * q)


def calibration_error(logits: torch.Tensor, labels: torch.Tensor) -> float | None:
    """Return the expected calibration error of logits [n, classes], in percent.

    That is Guo et al. (ICML 2017, Eq. 3) with M = 15 bins:

        ECE = sum_m |B_m| / n |acc(B_m) - conf(B_m)|

    B_m are the samples whose confidence, the highest probability, is in ((m - 1) / M, m / M];
    acc(B_m) is their accuracy and conf(B_m) their mean confidence. None if a logit is not finite.
    """
    if not bool(logits.isfinite().all()):
        return None
    confidence, predicted = logits.double().softmax(1).max(1)
    bins = torch.bucketize(confidence, torch.arange(1, BINS, dtype=torch.float64) / BINS)
    gaps = (predicted == labels).double() - confidence
    sums = torch.zeros(BINS, dtype=torch.float64).index_add_(0, bins, gaps)
    return PERCENT * float(sums.abs().sum()) / len(labels)


def disagreement(classes: torch.Tensor, outputs: int) -> float | None:
    """Return how often members disagree in percent, from their classes int64 [members, n].

    It is the mean over pairs of members of the share of samples for which they predict different
    ones of `outputs` classes (Fort et al. 2019: the disagreement of predictions),

        2 / (M (M - 1)) sum_{i < j} 1/n sum_x [argmax f_i(x) != argmax f_j(x)]

    None for a single member.
    """
    members, samples = classes.shape
    if members < 2:
        return None
    ones = torch.ones_like(classes)
    votes = torch.zeros(outputs, samples, dtype=torch.int64).scatter_add_(0, classes, ones)
    agreeing = int((votes * (votes - 1)).sum())  # ordered pairs
    return PERCENT * (1 - agreeing / (members * (members - 1) * samples))


def own_accuracies(scores: Sequence[Score], counts: ClassCounts) -> list[float]:
    """Return each client's accuracy on its own mix of classes, clients in order.

    Each class is weighted by the client's number of training samples. Classes that the evaluated
    set lacks are left out, and so are clients without any other class. `scores` has one score for
    all clients, or one per client.
    """
    # As lists: for 100,000 clients, taking numbers out of tensors was most of an evaluation.
    by_class = [scored.by_class.tolist() for scored in scores]
    models = by_class * len(counts) if len(scores) == 1 else by_class
    pairs = zip(sorted(counts), models, strict=True)
    own = (_weighted(model, counts[client]) for client, model in pairs)
    return [accuracy for accuracy in own if accuracy is not None]


def by_own_mix(scored: Score, counts: ClassCounts) -> dict[int, float | None]:
    """Return the accuracies of `own_accuracies` by client, None where it leaves a client out."""
    by_class = scored.by_class.tolist()
    return {client: _weighted(by_class, own) for client, own in sorted(counts.items())}


def _weighted(by_class: Sequence[float], counts: Mapping[int, int]) -> float | None:
    known = {label: n for label, n in counts.items() if not math.isnan(by_class[label])}
    if not known:
        return None
    return sum(by_class[label] * n for label, n in known.items()) / sum(known.values())


# --- samples of a client --------------------------------------------------------------------------


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
