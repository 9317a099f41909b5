"""The clients with the highest estimated number of correctly predicted samples."""

from typing import ClassVar, Literal

from fedstage.settings.aggregators import Selection


class MostRight(Selection):
    """The clients of the highest product of samples and accuracy."""

    judged: ClassVar[bool] = True
    name: Literal["most_right"]


def choose(settings, candidates, generator):
    def right(client):
        return candidates.samples[client] * candidates.accuracies[client]

    return sorted(candidates.accuracies, key=right, reverse=True)[: settings.count]
