"""Rules that the server may use in place of the average of a group's models."""

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

from fedstage.settings.base import ByName, Choice, Count, Functions, Positive, Settings
from fedstage.settings.groups import client_groups, group_participants


class WeightedAverage(Settings):
    """The average of the participants' models, weighted by `weights`."""

    name: Literal["average"]


class ModelRule(Choice):
    """A rule that combines the models of all participants of a group into one.

    `fewest` is the number of participants that it needs.
    """

    room: ClassVar[str] = "algorithm.aggregation.rules"
    functions: ClassVar[Functions] = {"combine": ("settings", "models", "shares", "start")}

    @property
    def fewest(self) -> int:
        """The smallest number of models."""
        return 1


class Median(ModelRule):
    """The median of each parameter over the models (Yin et al. 2018)."""

    module: ClassVar[str] = "elementwise"
    name: Literal["median"]


class TrimmedMean(ModelRule):
    """The mean of each parameter without the largest and smallest values (Yin et al. 2018)."""

    module: ClassVar[str] = "elementwise"
    name: Literal["trimmed_mean"]
    trimmed: Positive = 1
    """Number of largest values that are left out, and of smallest values."""

    @property
    def fewest(self) -> int:
        """One more than the number of values that are left out."""
        return 2 * self.trimmed + 1


class Krum(ModelRule):
    """The model that is nearest to its neighbours (Blanchard et al. 2017)."""

    name: Literal["krum"]
    faulty: Count = 1
    """Number f of models that may be arbitrary."""
    selected: Positive = 1
    """Number of best models whose mean is taken; more than 1 gives Multi-Krum."""

    @property
    def fewest(self) -> int:
        """At least 2 f + 3, and at least f + 2 more than are selected."""
        return max(2 * self.faulty + 3, self.faulty + 2 + self.selected)


ServerRule = ByName[WeightedAverage | Median | TrimmedMean | Krum]


def check_number(recipe: Any, rule: ServerRule) -> Iterator[str]:
    """Yield a fault if a group has too few participants for the rule."""
    fewest = min(len(group_participants(recipe, group)) for group in client_groups(recipe))
    if isinstance(rule, ModelRule) and fewest < rule.fewest:
        yield f"aggregation.rule = {rule.name!r}: needs {rule.fewest} participants, not {fewest}"
