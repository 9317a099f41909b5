"""Judgements on claims as exact numbers: one row per comparison."""

from collections.abc import Iterable, Iterator
from math import isfinite
from typing import Any

import pyarrow as pa

from fedstage.results.claims.effects import Effect, stated_range
from fedstage.results.claims.verdicts import Judgement
from fedstage.settings.claims import Claim

SCHEMA = pa.schema(
    [
        pa.field("claim", pa.string(), nullable=False),
        pa.field("place", pa.string(), nullable=False),  # in the paper
        pa.field("quantifier", pa.string(), nullable=False),  # "all" or "mean"
        pa.field("metric", pa.string(), nullable=False),
        pa.field("comparison", pa.string(), nullable=False),  # which cells
        pa.field("effect", pa.string(), nullable=False),  # "difference", "ratio" or "value"
        pa.field("claimed_low", pa.float64()),  # the bounds of the claimed effect
        pa.field("claimed_high", pa.float64()),
        pa.field("published", pa.float64()),  # the effect in the paper's means
        pa.field("stated_low", pa.float64()),  # and in its text, if not in its tables
        pa.field("stated_high", pa.float64()),
        pa.field("published_holds", pa.bool_()),
        pa.field("seeds", pa.int64(), nullable=False),
        pa.field("mean", pa.float64()),  # the effect over seeds, and its 95 % confidence interval
        pa.field("low", pa.float64()),
        pa.field("high", pa.float64()),
        pa.field("verdict", pa.string(), nullable=False),
        pa.field("claim_published_holds", pa.bool_()),  # of the whole claim, as the next:
        pa.field("claim_verdict", pa.string(), nullable=False),  # the same in each of its rows
        pa.field("claim_p", pa.float64(), nullable=False),  # of that verdict, corrected (Holm)
        pa.field("claim_not_made", pa.int64(), nullable=False),  # comparisons without measurements
        pa.field("kind", pa.string(), nullable=False),  # "primary", its "cell", or "exploratory"
        pa.field("margin", pa.float64()),  # an effect nearer to 0 is practically nil
        # For this comparison alone, like the verdict: for each verdict but undecided.
        pa.field("p_holds", pa.float64(), nullable=False),
        pa.field("p_contradicted", pa.float64(), nullable=False),
        pa.field("p_nil", pa.float64(), nullable=False),
        # Upper bound of the standard error by the draw of test images, and 95 % interval with it.
        pa.field("image_error", pa.float64()),
        pa.field("low_with_images", pa.float64()),
        pa.field("high_with_images", pa.float64()),
        # P-value of Welch's test of printed means, also corrected for the claim's others (Holm).
        pa.field("published_p", pa.float64()),
        pa.field("published_p_holm", pa.float64()),
        pa.field("claim_evidence", pa.string()),  # what these tests find
        pa.field("claim_seeds_needed", pa.int64()),  # that would decide an undecided claim
        pa.field("claim_left_out", pa.int64(), nullable=False),  # comparisons the paper lacks
    ]
)

#: A comparison of a claim: what kind it is, and its place in the paper's evidence.
Line = tuple[str, Effect, int | None]


def claim_rows(judgements: Iterable[Judgement], metric: str) -> list[dict[str, Any]]:
    """Return the rows of the table; `metric` is the metric of claims without one."""
    return [
        _row(judgement, line, metric) for judgement in judgements for line in lines_of(judgement)
    ]


def lines_of(judgement: Judgement) -> Iterator[Line]:
    """Yield the comparisons of a claim: first the ones behind its verdict, then its cells."""
    claim = judgement.claim
    single = not judgement.cells and (claim.primary or claim.quantifier == "all")
    for i, effect in enumerate(judgement.effects):
        yield "primary" if claim.primary else "exploratory", effect, i if single else None
    for i, cell in enumerate(judgement.cells):
        yield "cell", cell, i


def published_p(judgement: Judgement, place: int | None) -> tuple[float | None, float | None]:
    """Return the paper's own p-value of a comparison, and the corrected one."""
    if judgement.evidence is None or place is None:
        return None, None
    return judgement.evidence.p_values[place], judgement.evidence.adjusted[place]


def _row(judgement: Judgement, line: Line, metric: str) -> dict[str, Any]:
    kind, effect, place = line
    over_images = effect.over_images
    own, adjusted = published_p(judgement, place)
    claim, interval, stated = judgement.claim, effect.measured, stated_range(judgement.claim)
    return {
        "claim": claim.id,
        "place": claim.place,
        "quantifier": claim.quantifier,
        "metric": claim.metric or metric,
        "comparison": effect.label,
        "effect": _kind(claim),
        "claimed_low": _number(claim.bounds[0]),
        "claimed_high": _number(claim.bounds[1]),
        "published": effect.published,
        "stated_low": stated[0] if stated else None,
        "stated_high": stated[1] if stated else None,
        "published_holds": effect.published_holds,
        "seeds": interval.n,
        "mean": _number(interval.mean),
        "low": _number(interval.low),
        "high": _number(interval.high),
        "verdict": effect.verdict,
        "claim_published_holds": judgement.published_holds,
        "claim_verdict": judgement.verdict,
        "claim_p": judgement.p_verdict,
        "claim_not_made": judgement.not_made,
        "kind": kind,
        "margin": claim.margin,
        "p_holds": effect.p_holds,
        "p_contradicted": effect.p_contradicted,
        "p_nil": effect.p_nil,
        "image_error": _number(effect.image_error),
        "low_with_images": None if over_images is None else _number(over_images.low),
        "high_with_images": None if over_images is None else _number(over_images.high),
        "published_p": own,
        "published_p_holm": adjusted,
        "claim_evidence": None if judgement.evidence is None else str(judgement.evidence),
        "claim_seeds_needed": judgement.needed,
        "claim_left_out": judgement.left_out,
    }


def _kind(claim: Claim) -> str:
    if claim.value is not None:
        return "value"
    return "difference" if claim.ratio is None else "ratio"


def _number(number: float) -> float | None:
    return number if isfinite(number) else None
