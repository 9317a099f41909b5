"""Whether a claim holds: in the published means, and in measurements with several seeds."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isnan, nan
from statistics import fmean

from fedstage.results.claims.comparisons import Cell, Pair, Show, comparisons, label_pair
from fedstage.results.claims.significance import LEVEL, holm, p_outside, p_within
from fedstage.results.intervals import Interval, confidence_interval
from fedstage.settings.claims import Claim, StatedRows

HOLDS, CONTRADICTED = "holds", "contradicted"
#: All comparisons that were made are as claimed, and others were not made.
HOLDS_SO_FAR = "holds where measured"
UNDECIDED, NOT_MEASURED = "undecided", "not measured"


@dataclass(frozen=True)
class Effect:
    """A difference, ratio or value that a claim is about.

    The cells of one seed share partition, participants and initial weights, so each seed gives one
    effect. The verdict follows from its own interval, whatever else is compared.
    """

    label: str  # the compared cells by their keys
    shown: str  # and by their labels
    published: float | None  # the effect in the published means, if none of them is missing
    published_holds: bool | None  # whether that, or else the paper's statement, is as claimed
    measured: Interval  # the effect over seeds
    verdict: str
    p_holds: float  # of the effect being as claimed
    p_contradicted: float  # and of its being beyond the claimed bounds


@dataclass(frozen=True)
class Judgement:
    """A claim with its effects, and the verdict on all of them together.

    `p_holds` is the p-value that all comparisons are as claimed, `p_contradicted` that one is not.
    """

    claim: Claim
    effects: list[Effect]
    published_holds: bool | None
    not_made: int  # comparisons of the paper's scale, or of this one, without measurements
    verdict: str
    p_holds: float
    p_contradicted: float

    @property
    def made(self) -> list[Effect]:
        """The effects that have measurements."""
        return [effect for effect in self.effects if effect.measured.n]

    @property
    def p_value(self) -> float:
        """The p-value of the claim's verdict, without regard to other claims."""
        return min(self.p_holds, self.p_contradicted)


def judge(
    claim: Claim, cells: Sequence[Cell], show: Show = dict, claimed: int | None = None
) -> Judgement:
    """Judge a claim on an experiment's cells.

    A claim about all comparisons holds if it holds in each that is made, is contradicted if one
    contradicts it, with Bonferroni's correction for their number, and is undecided or not measured
    otherwise.

    Parameters
    ----------
    show : callable
        Turns a point into its labels.
    claimed : int, optional
        How many comparisons the claim is about, if they are more than these cells make.
    """
    pairs = comparisons(claim, cells)
    groups = [[pair] for pair in pairs] if claim.quantifier == "all" or not pairs else [pairs]
    effects = [_effect(claim, group, pairs, show) for group in groups]
    known = [effect.published_holds for effect in effects if effect.published_holds is not None]
    made = [effect for effect in effects if effect.measured.n]
    measured = len(made) if claim.quantifier == "all" else len(made) * len(pairs)
    return _decided(
        Judgement(
            claim,
            effects,
            all(known) if known else None,
            max(claimed or 0, len(pairs)) - measured,
            NOT_MEASURED,
            max((effect.p_holds for effect in made), default=1.0),
            min((1.0, *(len(made) * effect.p_contradicted for effect in made))),
        )
    )


def correct(judgements: Sequence[Judgement]) -> list[Judgement]:
    """Return judgements whose p-values and verdicts allow for one another (Holm's correction).

    The family are the claims that have measurements.
    """
    measured = [judgement for judgement in judgements if judgement.made]
    adjusted = dict(
        zip(map(id, measured), holm([judgement.p_value for judgement in measured]), strict=True)
    )
    return [
        _adjusted(judgement, adjusted[id(judgement)]) if judgement.made else judgement
        for judgement in judgements
    ]


def _adjusted(judgement: Judgement, p_value: float) -> Judgement:
    """Return a judgement with another p-value of its verdict."""
    if judgement.p_holds <= judgement.p_contradicted:
        return _decided(replace(judgement, p_holds=p_value, p_contradicted=1.0))
    return _decided(replace(judgement, p_holds=1.0, p_contradicted=p_value))


def _decided(judgement: Judgement) -> Judgement:
    """Return a judgement with the verdict that its p-values allow."""
    if not judgement.made:
        return judgement
    if judgement.p_value > LEVEL:
        return replace(judgement, verdict=UNDECIDED)
    if judgement.p_contradicted < judgement.p_holds:
        return replace(judgement, verdict=CONTRADICTED)
    return replace(judgement, verdict=HOLDS_SO_FAR if judgement.not_made else HOLDS)


def is_within(claim: Claim, effect: float) -> bool:
    """Whether an effect is as claimed; a difference of 0 is neither greater nor less."""
    low, high = claim.bounds
    return low <= effect <= high and (claim.than is None or effect != 0)


def decide(claim: Claim, interval: Interval) -> str:
    """Return the verdict on one effect.

    It is `HOLDS` if the whole interval is within the claim's bounds, `CONTRADICTED` if none of it
    is, else `UNDECIDED`, also for a single seed; `NOT_MEASURED` without a seed.
    """
    if not interval.n:
        return NOT_MEASURED
    if is_within(claim, interval.low) and is_within(claim, interval.high):
        return HOLDS
    low, high = claim.bounds
    return CONTRADICTED if interval.high < low or interval.low > high else UNDECIDED


def stated_range(claim: Claim) -> tuple[float, float] | None:
    """Return the range of a claim's effect that the paper's text states, if any."""
    assert not isinstance(claim.stated, StatedRows), "load_claims replaces rows by their range"
    return claim.stated


def _effect(claim: Claim, pairs: Sequence[Pair], every: Sequence[Pair], show: Show) -> Effect:
    """Return the effect of a pair, or the mean effect of several."""
    values = _by_seed(claim, pairs)
    interval = confidence_interval(values)
    published = _published(claim, pairs)
    stated = stated_range(claim) if isnan(published) else (published, published)
    label = shown = f"mean of {len(pairs)}"
    if len(pairs) == 1:
        label = label_pair(claim, pairs[0], every)
        shown = label_pair(claim, pairs[0], every, show)
    return Effect(
        label,
        shown,
        None if isnan(published) else published,
        None if stated is None else all(is_within(claim, end) for end in stated),
        interval,
        decide(claim, interval),
        p_within(values, *claim.bounds, closed=claim.than is None),
        p_outside(values, *claim.bounds),
    )


def _by_seed(claim: Claim, pairs: Sequence[Pair]) -> list[float]:
    """Return the mean effect over pairs of each seed that all cells have.

    Seeds with a ratio to zero are left out.
    """
    cells = [cell for pair in pairs for cell in pair]
    seeds = [seed for seed in cells[0].values if all(seed in cell.values for cell in cells)]
    effects = [
        fmean(_contrast(claim, left.values[seed], right.values[seed]) for left, right in pairs)
        for seed in seeds
    ]
    return [effect for effect in effects if not isnan(effect)]


def _published(claim: Claim, pairs: Sequence[Pair]) -> float:
    """Return the mean effect in the published means of the pairs that have both, or nan."""
    effects = [
        _contrast(claim, left.published, right.published)
        for left, right in pairs
        if left.published is not None and right.published is not None
    ]
    return fmean(effects) if effects else nan


def _contrast(claim: Claim, left: float, right: float) -> float:
    if claim.value is not None:
        return left
    if claim.ratio is None:
        return left - right
    return left / right if right else nan
