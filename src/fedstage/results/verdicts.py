"""Whether one claim holds: in the published means, and in measurements with several seeds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan, nan
from statistics import fmean

from scipy import stats

from fedstage.results.comparisons import Cell, Pair, Show, comparisons, label_pair
from fedstage.results.statistics import (
    LEVEL,
    Interval,
    confidence_interval,
    holm,
    p_outside,
    p_within,
)
from fedstage.settings.scores import Axis, Claim, Family, StatedRows

HOLDS, CONTRADICTED, NIL = "holds", "contradicted", "practically nil"
UNDECIDED, NOT_MEASURED = "undecided", "not measured"
#: The verdicts on effects of runs that are not in the regime that a claim is about.
ELSEWHERE = {HOLDS: "holds, in another regime", CONTRADICTED: "another regime"}

#: The p-value of each verdict that measurements may decide for.
PValues = Mapping[str, float]


@dataclass(frozen=True)
class Effect:
    """A difference, ratio or value that a claim is about.

    The cells of one seed share partition, participants and initial weights, so each seed gives one
    effect. The verdict follows from the effect's own p-values, regardless of other comparisons.
    """

    label: str  # the compared cells by their keys
    shown: str  # and by their labels
    pairs: Sequence[Pair]  # the cells
    published: float | None  # the effect in the published means, if none of them is missing
    published_holds: bool | None  # whether it, or else the paper's statement, is as claimed
    published_p: float | None  # of Welch's test of the printed means, deviations and seeds
    values: Sequence[float]  # the effect of each seed
    measured: Interval  # the effect over seeds
    p: PValues

    @property
    def verdict(self) -> str:
        """The verdict on this effect alone."""
        return decide(self.p) if self.values else NOT_MEASURED


@dataclass(frozen=True)
class Judgement:
    """A claim with its comparisons, and the verdict on all of them together.

    `mean` is the mean over the comparisons that are measured, of a claim about an average. `total`
    is the number of comparisons at the paper's scale, or here if that is larger.
    """

    claim: Claim
    comparisons: Sequence[Effect]
    mean: Effect | None
    total: int
    p: PValues
    outside: bool = False  # of the regime that the claim is about

    @property
    def effects(self) -> Sequence[Effect]:
        """The effects behind the verdict: the mean, or else each comparison."""
        return self.comparisons if self.mean is None else [self.mean]

    @property
    def measured(self) -> int:
        """The number of comparisons with measurements."""
        return sum(1 for effect in self.comparisons if effect.values)

    @property
    def seeds(self) -> int:
        """The number of seeds of the measured effect that has the fewest."""
        return min((len(effect.values) for effect in self.effects if effect.values), default=0)

    @property
    def verdict(self) -> str:
        """The verdict on the claim."""
        verdict = decide(self.p) if self.measured else NOT_MEASURED
        return ELSEWHERE.get(verdict, verdict) if self.outside else verdict

    @property
    def published_holds(self) -> bool | None:
        """Whether the claim holds in all published effects, if there are any."""
        known = [one.published_holds for one in self.effects if one.published_holds is not None]
        return all(known) if known else None


def decide(p: PValues) -> str:
    """Return the verdict that p-values allow.

    An effect that is surely within the margin is practically nil, on either side of 0.
    """
    if p.get(NIL, 1.0) <= LEVEL:
        return NIL
    nearest = min(p, key=p.__getitem__)
    return nearest if p[nearest] <= LEVEL else UNDECIDED


def p_of_verdict(p: PValues) -> float:
    """Return the p-value of the verdict of `decide`, of the t-test if it is undecided."""
    return p.get(decide(p), min(p[HOLDS], p[CONTRADICTED]))


def judge(
    claim: Claim, cells: Sequence[Cell], show: Show = dict, claimed: int | None = None
) -> Judgement:
    """Judge a claim on an experiment's cells.

    A claim about all comparisons holds if it holds in each that is measured. It is contradicted if
    one comparison contradicts it, with Bonferroni's correction for their number, and practically
    nil if all are. Otherwise it is undecided or not measured. A claim about an average is judged on
    the mean over its comparisons. The published numbers are judged by the same rule.

    Parameters
    ----------
    show : callable
        Turns a point into its labels.
    claimed : int, optional
        The number of comparisons that the claim is about, if these cells make fewer.
    """
    pairs = comparisons(claim, cells)
    every = [_effect(claim, [pair], pairs, show) for pair in pairs]
    mean = None
    if claim.quantifier == "mean" and len(pairs) > 1:  # one is its own mean
        measured = [pair for pair, effect in zip(pairs, every, strict=True) if effect.values]
        mean = _effect(claim, measured or pairs, pairs, show)
    judged = Judgement(claim, every, mean, max(claimed or 0, len(pairs)), {})
    of_each = [one.p for one in judged.effects if one.values]
    together = {name: max(p[name] for p in of_each) for name in (of_each[0] if of_each else ())}
    if of_each:
        together[CONTRADICTED] = min(1.0, len(of_each) * min(p[CONTRADICTED] for p in of_each))
    return replace(judged, p=together)


def correct(judgements: Sequence[Judgement], families: Sequence[Family]) -> list[Judgement]:
    """Return judgements on primary claims with p-values that Holm's method corrects.

    With 95 % probability, all verdicts on the primary claims of a paper are right. Claims of a
    family that are not measured count with a p-value of 1. Primary claims of none of the `families`
    form one more. Other claims are not corrected.
    """
    found = {one.claim.id: one for one in judgements}
    named = {name for family in families for name in family.claims}
    others = [name for name, one in found.items() if one.claim.primary and name not in named]
    for family in (*families, Family(claims=others, primary=len(others))):
        measured = [name for name in family.claims if name in found and found[name].measured]
        p_values = [min(found[name].p.values()) for name in measured]
        adjusted = holm([*p_values, *[1.0] * (family.primary - len(measured))])
        for name, p, q in zip(measured, p_values, adjusted, strict=False):
            factor = q / p if p else float(family.primary)
            times = {key: min(1.0, factor * value) for key, value in found[name].p.items()}
            found[name] = replace(found[name], p=times)
    return [found[one.claim.id] for one in judgements]


# --- effects --------------------------------------------------------------------------------------


def _effect(claim: Claim, pairs: Sequence[Pair], every: Sequence[Pair], show: Show) -> Effect:
    """Return the effect of a pair, or the mean effect of several."""
    values = effects_by_seed(claim, pairs)
    published = _published_effect(claim, pairs)
    stated = stated_range(claim) if isnan(published) else (published, published)
    one = pairs[0] if len(pairs) == 1 else None
    return Effect(
        label_pair(claim, one, every) if one else f"mean of {len(pairs)}",
        label_pair(claim, one, every, show) if one else f"mean of {len(pairs)}",
        pairs,
        None if isnan(published) else published,
        None if stated is None else all(_is_within(claim, end) for end in stated),
        _welch(*one) if claim.than is not None and one else None,
        values,
        confidence_interval(values),
        _p_values(claim, values),
    )


def _p_values(claim: Claim, values: Sequence[float]) -> PValues:
    """Return the p-values of a mean as claimed, beyond the claimed bounds, and within the margin.

    Each is at most 0.05 if the 95 % confidence interval is there as a whole.
    """
    p = {
        HOLDS: p_within(values, *claim.bounds, closed=claim.than is None),
        CONTRADICTED: p_outside(values, *claim.bounds),
    }
    if claim.margin is not None:
        p[NIL] = p_within(values, -claim.margin, claim.margin, closed=False)
    return p


def effects_by_seed(claim: Claim, pairs: Sequence[Pair]) -> list[float]:
    """Return the mean effect over pairs of each seed that all cells have, without ratios to 0."""
    cells = [cell for pair in pairs for cell in pair]
    common: set[Axis] = set(cells[0].values).intersection(*(cell.values for cell in cells))
    effects = [
        fmean(_contrast(claim, left.values[seed], right.values[seed]) for left, right in pairs)
        for seed in sorted(common, key=lambda seed: int(str(seed)))
    ]
    return [effect for effect in effects if not isnan(effect)]


def stated_range(claim: Claim) -> tuple[float, float] | None:
    """Return the range of a claim's effect that the paper's text states, if any."""
    assert not isinstance(claim.stated, StatedRows), "load_claims replaces rows by their range"
    return claim.stated


def _published_effect(claim: Claim, pairs: Sequence[Pair]) -> float:
    """Return the mean effect in the published means of the pairs that have both, or nan."""
    effects = [
        _contrast(claim, left.published, right.published)
        for left, right in pairs
        if left.published is not None and right.published is not None
    ]
    return fmean(effects) if effects else nan


def _is_within(claim: Claim, effect: float) -> bool:
    """Whether an effect is as claimed; a difference of 0 is neither greater nor less."""
    low, high = claim.bounds
    return low <= effect <= high and (claim.than is None or effect != 0)


def _contrast(claim: Claim, left: float, right: float) -> float:
    if claim.value is not None:
        return left
    if claim.ratio is None:
        return left - right
    return left / right if right else nan


def printed(cell: Cell) -> tuple[float, float, int] | None:
    """Return the mean, deviation and number of seeds of a paper, None if one is not printed."""
    if cell.published is None or cell.published_std is None or (cell.published_seeds or 0) < 2:
        return None
    assert cell.published_seeds is not None, "compared with 2"
    return cell.published, cell.published_std, cell.published_seeds


def _welch(left: Cell, right: Cell) -> float | None:
    """Return Welch's p-value of two printed means; None without a deviation above 0.

    They are taken as independent, because papers do not print whether seeds were paired.
    """
    one, other = printed(left), printed(right)
    if one is None or other is None:
        return None
    p_value = float(stats.ttest_ind_from_stats(*one, *other, equal_var=False).pvalue)
    return None if isnan(p_value) else p_value
