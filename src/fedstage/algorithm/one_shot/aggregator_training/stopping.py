"""The loop around an aggregator's training: losses, validation and early stopping.

Validation never uses the test set, only clients' samples with the role `validation`.
"""

from collections.abc import Iterable

import torch

from fedstage.algorithm.one_shot.aggregator_training import Round, Samples, Task, Trained
from fedstage.algorithm.one_shot.aggregators import Combine
from fedstage.errors import FedstageError
from fedstage.settings.aggregators import AggregatorTraining
from fedstage.weights import Weights

PERCENT = 100.0
KEPT_EVERY = 5  # rounds between scores of the aggregator in FENS's released code

#: After a round (or step): lambda, the number of participants and their mean loss.
Progress = tuple[Weights, int, torch.Tensor]


def follow(
    training: Iterable[Progress], settings: AggregatorTraining, task: Task, last: int
) -> Trained:
    """Train until the end, or until `patience` rounds after the best; keep the best aggregator.

    Without early stopping nothing is evaluated, and the last aggregator is the best. With it, the
    last possible round is always evaluated.

    Raises
    ------
    FedstageError
        If training diverges; names the first round or step whose loss is not finite.
    """
    stopping, best, parameters, highest = settings.early_stopping, 0, task.start, -1.0
    present, losses, accuracies = [], [], []
    kept: dict[int, Weights] = {}
    for number, (current, participants, loss) in enumerate(training, start=1):
        accuracy = None
        if stopping is not None and (number % stopping.every == 0 or number == last):
            assert task.validation is not None, "the graph gives it to a recipe that stops early"
            accuracy = accuracy_of(task.combine, current, task.validation)
        if stopping is None or (accuracy is not None and accuracy > highest):  # a tie is no better
            best, parameters, highest = number, current, accuracy or 0.0
        if number % KEPT_EVERY == 0:
            kept[number] = current
        present.append(participants)
        losses.append(loss)
        accuracies.append(accuracy)
        if stopping is not None and number - best >= stopping.patience:
            break
    values = torch.stack(losses).cpu()
    wrong = (~values.isfinite()).nonzero()
    if len(wrong):
        raise diverged(settings, int(wrong[0]) + 1)
    columns = zip(present, values.tolist(), accuracies, strict=True)
    rounds = [Round(number, *columns) for number, columns in enumerate(columns, start=1)]
    return Trained(parameters, best, rounds, kept)


def diverged(settings: AggregatorTraining, number: int) -> FedstageError:
    """Return the error of a round or step after which training has diverged."""
    unit = "step" if settings.name == "proxy" else "round"
    return FedstageError(
        f"aggregator, {unit} {number}: the loss is not finite; lower "
        f"aggregator_training.learning_rate = {settings.learning_rate}"
    )


@torch.no_grad()
def accuracy_of(combine: Combine, parameters: Weights, samples: Samples) -> float:
    """Return the accuracy on the samples, in percent."""
    logits = combine(parameters, samples.logits, samples.pixels)
    return PERCENT * float((logits.argmax(1) == samples.labels).double().mean())
