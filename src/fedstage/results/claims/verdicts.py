"""Whether a claim holds: in the published means, and in measurements with several seeds."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan, nan
from statistics import fmean

from fedstage.results.claims.comparisons import Cell, Pair, Show, comparisons, label_pair
from fedstage.results.claims.intervals import Interval, confidence_interval
from fedstage.settings.claims import Claim, StatedRows

HOLDS, CONTRADICTED = "holds", "contradicted"
UNDECIDED, NOT_MEASURED = "undecided", "not measured"


@dataclass(frozen=True)
class Effect:
    """A difference, ratio or value that a claim is about.

    The cells of one seed share partition, participants and initial weights, so each seed gives one
    effect.
    """

    label: str  # the compared cells by their keys
    shown: str  # and by their labels
    published: float | None  # the effect in the published means, if none of them is missing
    published_holds: bool | None  # whether that, or else the paper's statement, is as claimed
    measured: Interval  # the effect over seeds
    verdict: str


@dataclass(frozen=True)
class Judgement:
    """A claim with its effects, and the verdicts on all of them together."""

    claim: Claim
    effects: list[Effect]
    published_holds: bool | None
    verdict: str


def judge(claim: Claim, cells: Sequence[Cell], show: Show = dict) -> Judgement:
    """Judge a claim on an experiment's cells.

    A claim about all comparisons holds if it holds in each, is contradicted if one contradicts it,
    and is undecided or not measured otherwise. `show` turns a point into its labels.
    """
    pairs = comparisons(claim, cells)
    groups = [[pair] for pair in pairs] if claim.quantifier == "all" or not pairs else [pairs]
    effects = [_effect(claim, group, pairs, show) for group in groups]
    known = [effect.published_holds for effect in effects if effect.published_holds is not None]
    return Judgement(
        claim,
        effects,
        all(known) if known else None,
        combine([effect.verdict for effect in effects]),
    )


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


def combine(verdicts: Sequence[str]) -> str:
    """Return the verdict on a claim about all of its effects."""
    if CONTRADICTED in verdicts:
        return CONTRADICTED
    if all(verdict == NOT_MEASURED for verdict in verdicts):
        return NOT_MEASURED
    return HOLDS if all(verdict == HOLDS for verdict in verdicts) else UNDECIDED


def _effect(claim: Claim, pairs: Sequence[Pair], every: Sequence[Pair], show: Show) -> Effect:
    """Return the effect of a pair, or the mean effect of several."""
    interval = confidence_interval(_by_seed(claim, pairs))
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
