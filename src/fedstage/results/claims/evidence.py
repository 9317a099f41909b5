"""The papers' own evidence: what tests of their printed means, deviations and seeds find."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan

from scipy import stats

from fedstage.results.claims.comparisons import Cell, Pair
from fedstage.results.claims.significance import LEVEL, holm
from fedstage.settings.claims import Claim


@dataclass(frozen=True)
class Evidence:
    """Welch's tests of a claim's comparisons, as far as a paper prints what they need.

    `p_values` has one for each pair, two-sided, None where a number is missing; `adjusted` are the
    same corrected for one another (Holm).
    """

    p_values: list[float | None]
    adjusted: list[float | None]
    tested: int
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

    The printed means are taken as independent: whether seeds were paired is not printed.
    """
    if claim.than is None:
        return None
    p_values = [_welch(*pair) for pair in pairs]
    known = [p for p in p_values if p is not None]
    if not known:
        return None
    after = iter(holm(known))
    adjusted = [None if p is None else next(after) for p in p_values]
    sign = 1 if claim.greater is not None else -1
    right = [
        (p, q)
        for pair, p, q in zip(pairs, p_values, adjusted, strict=True)
        if p is not None and q is not None and sign * _difference(*pair) > 0
    ]
    return Evidence(
        p_values,
        adjusted,
        len(known),
        len(right),
        sum(p <= LEVEL for p, _ in right),
        sum(q <= LEVEL for _, q in right),
    )


def _difference(left: Cell, right: Cell) -> float:
    assert left.published is not None, "tested"
    assert right.published is not None, "tested"
    return left.published - right.published


def _welch(left: Cell, right: Cell) -> float | None:
    """Return Welch's p-value of two printed means, or None where it has none."""
    one, other = _printed(left), _printed(right)
    if one is None or other is None:
        return None
    p_value = float(stats.ttest_ind_from_stats(*one, *other, equal_var=False).pvalue)
    return None if isnan(p_value) else p_value  # of two deviations of 0


def _printed(cell: Cell) -> tuple[float, float, int] | None:
    """Return mean, deviation and number of seeds, or None if one is not printed."""
    if cell.published is None or cell.published_std is None or (cell.published_seeds or 0) < 2:
        return None
    assert cell.published_seeds is not None, "compared with 2"
    return cell.published, cell.published_std, cell.published_seeds
