"""Early stopping of an aggregator, on the clients' validation samples.

The test set cannot be asked: what is given here are samples of role `validation`.
"""

from dataclasses import dataclass, field

import torch

from fedstage.algorithm.one_shot.aggregator_training import Samples
from fedstage.algorithm.one_shot.aggregators import Combine
from fedstage.settings.aggregators import AggregatorStopping
from fedstage.storage.tensors import Weights

PERCENT = 100.0


@dataclass
class Watch:
    """Measures an aggregator every few rounds, and keeps the best.

    Attributes
    ----------
    settings : AggregatorStopping or None
        None: nothing is measured, and the last aggregator is the best.
    last : int
        The last round there can be, which is measured in any case.
    """

    settings: AggregatorStopping | None
    combine: Combine
    samples: Samples | None
    last: int
    accuracy: float = -1.0
    round: int = 0
    parameters: Weights = field(default_factory=dict)

    def measure(self, round: int, parameters: Weights) -> float | None:
        """Return the accuracy in percent after a round, None where it is not measured."""
        if self.settings is None:
            self.round, self.parameters = round, parameters
            return None
        if round % self.settings.every and round < self.last:
            return None
        assert self.samples is not None, "the graph gives them to a line that stops early"
        accuracy = accuracy_of(self.combine, parameters, self.samples)
        if accuracy > self.accuracy:  # a tie is no improvement
            self.accuracy, self.round, self.parameters = accuracy, round, parameters
        return accuracy

    def ends(self, round: int) -> bool:
        """Whether `patience` rounds have passed since the best."""
        return self.settings is not None and round - self.round >= self.settings.patience


@torch.no_grad()
def accuracy_of(combine: Combine, parameters: Weights, samples: Samples) -> float:
    """Return how many percent of the samples are right."""
    said = combine(parameters, samples.logits, samples.pixels)
    return PERCENT * float((said.argmax(1) == samples.labels).double().mean())
