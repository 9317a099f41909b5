"""What the server takes in place of the average of a group's models."""

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

from fedstage.settings.base import ByName, Choice, Count, Positive, Settings
from fedstage.settings.groups import client_groups, group_slots


class WeightedAverage(Settings):
    """The average of the participants' models, by `weights`."""

    name: Literal["average"]


class ModelRule(Choice):
    """A rule that makes one model of all models of a group's participants.

    `fewest` is how many participants it needs.
    """

    room: ClassVar[str] = "algorithm.aggregation.rules"

    @property
    def fewest(self) -> int:
        """How many models there must be."""
        return 1


class Median(ModelRule):
    """The median of each number (Yin et al. 2018)."""

    name: Literal["median"]


class TrimmedMean(ModelRule):
    """Of each number the mean without the `trimmed` largest and smallest (Yin et al. 2018)."""

    name: Literal["trimmed_mean"]
    trimmed: Positive = 1

    @property
    def fewest(self) -> int:
        """One more than are left out."""
        return 2 * self.trimmed + 1


class Krum(ModelRule):
    """The model that is nearest to its neighbours (Blanchard et al. 2017).

    `faulty` of them may be anything. The mean of the best `selected` is Multi-Krum.
    """

    name: Literal["krum"]
    faulty: Count = 1
    selected: Positive = 1

    @property
    def fewest(self) -> int:
        """2 f + 3, and f + 2 more than are selected."""
        return max(2 * self.faulty + 3, self.faulty + 2 + self.selected)


ServerRule = ByName[WeightedAverage | Median | TrimmedMean | Krum]


def check_rule(line: Any) -> Iterator[str]:
    """Yield what a `Line` has that does not go with a rule in place of the average."""
    rule, aggregation = line.aggregation.rule, line.aggregation
    where = f"aggregation.rule = {rule.name!r}"
    if line.local.exchanges != "weights":
        yield f"{where}: not with local = {line.local.name}, whose clients send no weights"
    if line.local.needs_average:
        yield f"{where}: not with local = {line.local.name}, whose equations are about the average"
    if aggregation.discount.name != "constant" or aggregation.stale != "models":
        yield f"{where}: only for aggregation.discount = constant and stale = models"
    if line.head_transfer:
        yield f"{where}: not with head_transfer, which averages the heads of all participants"
    yield from _check_number(line, where, rule)


def _check_number(line: Any, where: str, rule: ModelRule) -> Iterator[str]:
    """Yield that a group has too few participants, as far as slots tell."""
    if line.client_groups == "drawn" and rule.fewest > 1:
        yield f"{where}: not with client_groups = drawn, by which a group may have one participant"
    fewest = min(len(group_slots(line, group)) for group in client_groups(line))
    if fewest < rule.fewest:
        yield (
            f"{where}: {fewest} participants in a group: with these settings it needs at least "
            f"{rule.fewest}"
        )
