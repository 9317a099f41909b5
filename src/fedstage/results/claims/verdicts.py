"""Whether a claim holds: in the published means, and in what was measured with several seeds."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan, nan
from statistics import fmean

from fedstage.results.claims.comparisons import Cell, Pair, comparisons, label_pair
from fedstage.results.claims.intervals import Interval, confidence_interval
from fedstage.settings.claims import Claim, StatedRows

HOLDS, CONTRADICTED, UNDECIDED, NOT_MEASURED = (
    "holds",
    "contradicted",
    "undecided",
    "not measured",
)


@dataclass(frozen=True)
class Effect:
    """A difference, ratio or value that a claim is about.

    Attributes
    ----------
    label : str
        The cells that are compared.
    published : float or None
        The effect in the published means; None where one of them is missing.
    published_holds : bool or None
        Whether that is within the claim's bounds or, where there is none, what the paper states.
    measured : Interval
        The effect over seeds. The cells of one seed share partition, participants and initial
        weights, so each seed gives one effect.
    verdict : str
        `HOLDS` if the whole interval is within the claim's bounds, `CONTRADICTED` if none of it
        is, else `UNDECIDED`; `NOT_MEASURED` without a seed.
    """

    label: str
    published: float | None
    published_holds: bool | None
    measured: Interval
    verdict: str


@dataclass(frozen=True)
class Judgement:
    """A claim with its effects, and the verdicts on the whole of it."""

    claim: Claim
    effects: list[Effect]
    published_holds: bool | None
    verdict: str


def judge(claim: Claim, cells: Sequence[Cell]) -> Judgement:
    """Judge a claim on an experiment's cells.

    A claim about all comparisons holds if it holds in each, and is contradicted if it is in one; it
    is undecided or not measured otherwise.
    """
    pairs = comparisons(claim, cells)
    groups = [[pair] for pair in pairs] if claim.quantifier == "all" or not pairs else [pairs]
    effects = [_effect(claim, group, pairs) for group in groups]
    known = [effect.published_holds for effect in effects if effect.published_holds is not None]
    return Judgement(
        claim,
        effects,
        all(known) if known else None,
        combine([effect.verdict for effect in effects]),
    )


def is_within(claim: Claim, effect: float) -> bool:
    """Whether an effect is as claimed: a difference of 0 is neither greater nor less."""
    low, high = claim.bounds
    return low <= effect <= high and (claim.than is None or effect != 0)


def decide(claim: Claim, interval: Interval) -> str:
    """Return the verdict on one effect; a single seed has no interval, and decides nothing."""
    if not interval.n:
        return NOT_MEASURED
    if is_within(claim, interval.low) and is_within(claim, interval.high):
        return HOLDS
    low, high = claim.bounds
    return CONTRADICTED if interval.high < low or interval.low > high else UNDECIDED


def stated_range(claim: Claim) -> tuple[float, float] | None:
    """Return what the paper's text says of a claim's effect, None where it says nothing."""
    assert not isinstance(claim.stated, StatedRows), "load_claims has looked them up"
    return claim.stated


def combine(verdicts: Sequence[str]) -> str:
    """Return the verdict on a claim about all of its effects."""
    if CONTRADICTED in verdicts:
        return CONTRADICTED
    if all(verdict == NOT_MEASURED for verdict in verdicts):
        return NOT_MEASURED
    return HOLDS if all(verdict == HOLDS for verdict in verdicts) else UNDECIDED


def _effect(claim: Claim, pairs: Sequence[Pair], every: Sequence[Pair]) -> Effect:
    """Return the effect of a group of pairs: one, or all of them averaged."""
    interval = confidence_interval(_by_seed(claim, pairs))
    published = _published(claim, pairs)
    stated = stated_range(claim) if isnan(published) else (published, published)
    return Effect(
        label_pair(claim, pairs[0], every) if len(pairs) == 1 else f"mean of {len(pairs)}",
        None if isnan(published) else published,
        None if stated is None else all(is_within(claim, end) for end in stated),
        interval,
        decide(claim, interval),
    )


def _by_seed(claim: Claim, pairs: Sequence[Pair]) -> list[float]:
    """Return the effect with each seed that all cells were measured with, averaged over pairs.

    A seed with a ratio to nothing does not count.
    """
    cells = [cell for pair in pairs for cell in pair]
    seeds = [seed for seed in cells[0].values if all(seed in cell.values for cell in cells)]
    effects = [
        fmean(_contrast(claim, left.values[seed], right.values[seed]) for left, right in pairs)
        for seed in seeds
    ]
    return [effect for effect in effects if not isnan(effect)]


def _published(claim: Claim, pairs: Sequence[Pair]) -> float:
    """Return the effect in the published means, averaged over the pairs that have both, or nan."""
    found = [
        _contrast(claim, left.published, right.published)
        for left, right in pairs
        if left.published is not None and right.published is not None
    ]
    return fmean(found) if found else nan


def _contrast(claim: Claim, left: float, right: float) -> float:
    if claim.value is not None:
        return left
    if claim.ratio is None:
        return left - right
    return left / right if right else nan
