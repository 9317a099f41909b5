"""What the server takes in place of the average of a group's models."""

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

from fedstage.settings.base import ByName, Choice, Count, Functions, Positive, Settings
from fedstage.settings.groups import client_groups, group_participants
from fedstage.settings.traits import Lacks, Needs, Trait


class WeightedAverage(Settings):
    """The average of the participants' models, by `weights`."""

    name: Literal["average"]


class ModelRule(Choice):
    """A rule that makes one model of all models of a group's participants.

    `fewest` is how many participants it needs.
    """

    room: ClassVar[str] = "algorithm.aggregation.rules"
    functions: ClassVar[Functions] = {"combine": ("settings", "models", "shares", "start")}
    needs: ClassVar[Needs] = {"name": (Trait.WEIGHTS,)}
    lacks: ClassVar[Lacks] = {
        "name": ("which is no average", Trait.AVERAGE, Trait.PLAIN_AVERAGE, Trait.SUM)
    }

    @property
    def fewest(self) -> int:
        """How many models there must be."""
        return 1


class Median(ModelRule):
    """The median of each number (Yin et al. 2018)."""

    name: Literal["median"]


class TrimmedMean(ModelRule):
    """Of each number the mean without the largest and smallest (Yin et al. 2018)."""

    needs: ClassVar[Needs] = {"name": (Trait.FIXED_GROUPS,)}
    name: Literal["trimmed_mean"]
    trimmed: Positive = 1
    """How many of the largest are left out, and of the smallest."""

    @property
    def fewest(self) -> int:
        """One more than are left out."""
        return 2 * self.trimmed + 1


class Krum(ModelRule):
    """The model that is nearest to its neighbours (Blanchard et al. 2017)."""

    needs: ClassVar[Needs] = {"name": (Trait.FIXED_GROUPS,)}
    name: Literal["krum"]
    faulty: Count = 1
    """How many models may be anything."""
    selected: Positive = 1
    """The mean of so many of the best models is Multi-Krum."""

    @property
    def fewest(self) -> int:
        """2 f + 3, and f + 2 more than are selected."""
        return max(2 * self.faulty + 3, self.faulty + 2 + self.selected)


ServerRule = ByName[WeightedAverage | Median | TrimmedMean | Krum]


def check_number(recipe: Any, rule: ServerRule) -> Iterator[str]:
    """Yield that a group has too few participants, as far as participants tell."""
    fewest = min(len(group_participants(recipe, group)) for group in client_groups(recipe))
    if isinstance(rule, ModelRule) and fewest < rule.fewest:
        yield (
            f"aggregation.rule = {rule.name!r}: {fewest} participants in a group: with these "
            f"settings it needs at least {rule.fewest}"
        )
