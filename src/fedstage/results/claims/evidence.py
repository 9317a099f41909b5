"""The papers' own evidence: tests of their printed means, deviations and numbers of seeds."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any, TypeAlias

from scipy import stats

from fedstage.results.claims.comparisons import Cell, Pair
from fedstage.results.claims.significance import LEVEL, holm
from fedstage.settings.claims import Claim

#: A mean, its deviation and the number of seeds.
Printed: TypeAlias = tuple[float, float, int]


@dataclass(frozen=True)
class Evidence:
    """Welch's tests of a claim's comparisons, as far as a paper prints the necessary numbers.

    `p_values` has a two-sided p-value for each pair, None where a number is missing; `adjusted` are
    the same, corrected for one another (Holm).
    """

    p_values: list[float | None]
    adjusted: list[float | None]
    tested: int  # number of different comparisons
    as_claimed: int  # comparisons on the claimed side of 0
    significant: int  # of these with p at most 0.05
    after_holm: int  # and after the correction

    def __str__(self) -> str:
        return (
            f"{self.as_claimed} of {self.tested} as claimed, {self.significant} with "
            f"p ≤ {LEVEL:g}, {self.after_holm} after Holm"
        )


def evidence_of(claim: Claim, pairs: Sequence[Pair]) -> Evidence | None:
    """Return the tests of a claim that cells are above or below others; None without any.

    The printed means are taken as independent: whether seeds were paired is not printed. Cells that
    stand for the same printed numbers are one test.
    """
    if claim.than is None:
        return None
    printed = [(_printed(left), _printed(right)) for left, right in pairs]
    tests: dict[Any, float] = {
        (left, right): p_value
        for left, right in printed
        if left and right and (p_value := _welch(left, right)) is not None
    }
    if not tests:
        return None
    adjusted = dict(zip(tests, holm(list(tests.values())), strict=True))
    sign = 1 if claim.greater is not None else -1
    as_claimed = [(left, right) for left, right in tests if sign * (left[0] - right[0]) > 0]
    return Evidence(
        [tests.get(key) for key in printed],
        [adjusted.get(key) for key in printed],
        len(tests),
        len(as_claimed),
        sum(tests[key] <= LEVEL for key in as_claimed),
        sum(adjusted[key] <= LEVEL for key in as_claimed),
    )


def _welch(left: Printed, right: Printed) -> float | None:
    """Return Welch's p-value of two printed means; None for two deviations of 0."""
    p_value = float(stats.ttest_ind_from_stats(*left, *right, equal_var=False).pvalue)
    return None if isnan(p_value) else p_value


def _printed(cell: Cell) -> Printed | None:
    """Return mean, deviation and number of seeds, or None if one is not printed."""
    if cell.published is None or cell.published_std is None or (cell.published_seeds or 0) < 2:
        return None
    assert cell.published_seeds is not None, "compared with 2"
    return cell.published, cell.published_std, cell.published_seeds
