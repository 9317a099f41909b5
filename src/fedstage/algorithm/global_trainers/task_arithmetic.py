"""Task arithmetic over groups of teachers (TAKFL, Morafah et al. 2024).

A student with weights a learns from each group j of clients by itself, which gives w_j. Then

    w = a + sum_j lambda_j (w_j - a) = sum_j lambda_j w_j       lambda_j >= 0, sum_j lambda_j = 1

with the lambda, of a grid over all such weights, that is best on the server's validation set: by
accuracy, of equal ones by the cross entropy. Running statistics are combined like weights.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from pathlib import Path

from fedstage.algorithm.aggregation.averages import average_weights
from fedstage.algorithm.global_trainers.students import Student
from fedstage.data.samples import read_labelled
from fedstage.training.passes import compute_logits, cross_entropy
from fedstage.weights import Weights


def merged(
    student: Student, taught: Sequence[Weights], parts: int, server_validation: Path
) -> tuple[Weights, tuple[float, ...]]:
    """Return the best merged weights, and lambda.

    Parameters
    ----------
    taught : sequence of dict
        w_j of each group.
    parts : int
        Each lambda_j is a multiple of 1 / `parts`.
    """
    images, labels = read_labelled(server_validation, None, student.device, student.info)
    model, numerics = student.model(), student.config.numerics

    def score(shares: tuple[float, ...]) -> tuple[int, float]:
        model.load_state_dict(average_weights(taught, shares))
        logits = compute_logits(model, images, student.info, numerics)
        right = int((logits.argmax(1) == labels.cpu()).sum())
        return right, -cross_entropy(logits, labels.cpu())

    best = max(simplex(len(taught), parts), key=score)
    return average_weights(taught, best), best


def simplex(groups: int, parts: int) -> Iterator[tuple[float, ...]]:
    """Yield all weights of groups that are multiples of 1 / `parts` and sum to 1."""
    places = parts + groups - 1
    for bars in combinations(range(places), groups - 1):
        yield tuple((after - before - 1) / parts for before, after in pairwise((-1, *bars, places)))
