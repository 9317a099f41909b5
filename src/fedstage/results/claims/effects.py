"""The effects that a claim is about: measured over seeds, and in the published means."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, isnan, nan, sqrt
from statistics import fmean
from typing import NamedTuple

from fedstage.results.claims.comparisons import Cell, Pair, Show, label_pair
from fedstage.results.claims.looks import look_at, repeated_p
from fedstage.results.claims.significance import LEVEL, PValues, p_nil, p_outside, p_within
from fedstage.results.intervals import Interval, confidence_interval, with_images
from fedstage.settings.claims import Claim, StatedRows
from fedstage.settings.scores import Axis

HOLDS, CONTRADICTED, NIL = "holds", "contradicted", "practically nil"
UNDECIDED, NOT_MEASURED = "undecided", "not measured"
#: A cell of a primary claim whose mean is not decided.
NOT_TESTED = "not tested"
_PERCENT = 100.0


class SeedEffect(NamedTuple):
    """The effect of one seed.

    If the run of a cell ended before it reached its goal, the effect is a limit: the true one is at
    most as large, or at least, or both where limits on the two sides meet in a mean.
    """

    value: float
    at_most: bool = False
    at_least: bool = False


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
    values: Sequence[float]  # the effect of each seed
    measured: Interval  # the effect over seeds
    verdict: str
    p: PValues
    image_error: float = nan  # standard error by the draw of the test images, at most
    over_images: Interval | None = None  # interval over seeds and test images
    at_most: int = 0  # seeds whose true effect is at most the value
    at_least: int = 0  # and at least


def decide(p: PValues) -> str:
    """Return the verdict that p-values allow.

    An effect that is surely within the margin is practically nil, on either side of 0.
    """
    if p.nil <= LEVEL:
        return NIL
    if p.smallest > LEVEL:
        return UNDECIDED
    return CONTRADICTED if p.contradicted < p.holds else HOLDS


def effect_of(
    claim: Claim, pairs: Sequence[Pair], every: Sequence[Pair], show: Show, looks: Sequence[int]
) -> Effect:
    """Return the effect of a pair, or the mean effect of several.

    With `looks`, only the seeds of the last look that has enough seeds count, in their order.
    """
    found = effects_by_seed(claim, pairs)
    look = look_at(len(found), looks)
    found = found if look is None else found[: looks[look]]
    values = [one.value for one in found]
    at_most = sum(one.at_most for one in found)
    at_least = sum(one.at_least for one in found)
    p_values = PValues(
        p_within(values, *claim.bounds, closed=claim.than is None),
        p_outside(values, *claim.bounds),
        1.0 if claim.margin is None else p_nil(values, claim.margin),
    )
    p_values = _with_limits(p_values, claim, bool(at_most), bool(at_least))
    if looks:
        p_values = _repeated(p_values, look, looks)
    published = published_effect(claim, pairs)
    stated = stated_range(claim) if isnan(published) else (published, published)
    label = shown = f"mean of {len(pairs)}"
    if len(pairs) == 1:
        label = label_pair(claim, pairs[0], every)
        shown = label_pair(claim, pairs[0], every, show)
    error, images = image_error(claim, pairs)
    return Effect(
        label,
        shown,
        pairs,
        None if isnan(published) else published,
        None if stated is None else all(is_within(claim, end) for end in stated),
        values,
        confidence_interval(values),
        decide(p_values) if values else NOT_MEASURED,
        p_values,
        error,
        None if isnan(error) else with_images(values, error**2, images),
        at_most,
        at_least,
    )


def _with_limits(p_values: PValues, claim: Claim, at_most: bool, at_least: bool) -> PValues:
    """Return p-values without the verdicts that limits of effects do not allow.

    A mean of effects that are at most as large as their values may be below a bound, but is never
    surely above one; and the other way round.
    """
    if not at_most and not at_least:
        return p_values
    low, high = map(isfinite, claim.bounds)
    holds = (at_most and low) or (at_least and high)
    contradicted = (at_most and high) or (at_least and low)
    return PValues(1.0 if holds else p_values.holds, 1.0 if contradicted else p_values.contradicted)


def _repeated(p_values: PValues, look: int | None, looks: Sequence[int]) -> PValues:
    """Return p-values that allow for all looks; before the first one nothing is decided."""
    if look is None:
        return PValues()
    return PValues(*(repeated_p(p, look, tuple(looks)) for p in p_values))


def is_within(claim: Claim, effect: float) -> bool:
    """Whether an effect is as claimed; a difference of 0 is neither greater nor less."""
    low, high = claim.bounds
    return low <= effect <= high and (claim.than is None or effect != 0)


def stated_range(claim: Claim) -> tuple[float, float] | None:
    """Return the range of a claim's effect that the paper's text states, if any."""
    assert not isinstance(claim.stated, StatedRows), "load_claims replaces rows by their range"
    return claim.stated


def common_seeds(pairs: Sequence[Pair]) -> list[Axis]:
    """Return the seeds that all cells of pairs have, in order."""
    cells = [cell for pair in pairs for cell in pair]
    seeds = [seed for seed in cells[0].values if all(seed in cell.values for cell in cells)]
    return sorted(seeds, key=lambda seed: int(str(seed)))


def by_seed(claim: Claim, pairs: Sequence[Pair]) -> list[float]:
    """Return the values of `effects_by_seed`."""
    return [effect.value for effect in effects_by_seed(claim, pairs)]


def effects_by_seed(claim: Claim, pairs: Sequence[Pair]) -> list[SeedEffect]:
    """Return the mean effect over pairs of each seed that all cells have.

    Seeds with a ratio to zero are left out, and seeds of which neither side reached its goal.
    """
    effects = [_seed_effect(claim, pairs, seed) for seed in common_seeds(pairs)]
    return [effect for effect in effects if not isnan(effect.value)]


def _seed_effect(claim: Claim, pairs: Sequence[Pair], seed: Axis) -> SeedEffect:
    """Return the mean effect of a seed, or nan."""
    compared = claim.value is None
    lefts = [seed in left.open_ended for left, _ in pairs]
    rights = [compared and seed in right.open_ended for _, right in pairs]
    if any(left and right for left, right in zip(lefts, rights, strict=True)):
        return SeedEffect(nan)
    value = fmean(_contrast(claim, left.values[seed], right.values[seed]) for left, right in pairs)
    return SeedEffect(value, at_most=any(rights), at_least=any(lefts))


def published_effect(claim: Claim, pairs: Sequence[Pair]) -> float:
    """Return the mean effect in the published means of the pairs that have both, or nan."""
    effects = [
        _contrast(claim, left.published, right.published)
        for left, right in pairs
        if left.published is not None and right.published is not None
    ]
    return fmean(effects) if effects else nan


def image_error(claim: Claim, pairs: Sequence[Pair]) -> tuple[float, int]:
    """Return the standard error of an effect by the draw of the test images, and their number.

    It is an upper bound, since no evaluation keeps the answer to each image. An accuracy p over n
    images has at most the binomial variance p (1 - p) / n. A difference of two accuracies on the
    same images has at most the sum of both variances, because the two are right and wrong together
    more often than if they were independent. For several pairs, which may share images, it is the
    mean of the errors. It is nan for ratios, and for anything but accuracies.
    """
    cells = [cell for pair in pairs for cell in pair]
    images = [cell.images for cell in cells if cell.images and cell.values]
    if claim.ratio is not None or not cells or len(images) < len(cells):
        return nan, 0
    return fmean(_pair_error(claim, *pair) for pair in pairs), min(images)


def _pair_error(claim: Claim, left: Cell, right: Cell) -> float:
    compared = [left] if claim.value is not None else [left, right]
    return sqrt(sum(_binomial(cell) for cell in compared))


def _binomial(cell: Cell) -> float:
    accuracy = fmean(cell.values.values())
    assert cell.images, "checked by image_error"
    return max(accuracy * (_PERCENT - accuracy), 0.0) / cell.images


def _contrast(claim: Claim, left: float, right: float) -> float:
    if claim.value is not None:
        return left
    if claim.ratio is None:
        return left - right
    return left / right if right else nan
