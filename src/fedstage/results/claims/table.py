"""The judgements on claims as exact numbers: one row per comparison."""

from collections.abc import Iterable
from math import isfinite
from typing import Any

import pyarrow as pa

from fedstage.results.claims.verdicts import Effect, Judgement, stated_range
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
        pa.field("stated_low", pa.float64()),  # and in its text, where it is not in its tables
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
    ]
)


def claim_rows(judgements: Iterable[Judgement], metric: str) -> list[dict[str, Any]]:
    """Return the rows of the table; `metric` is the metric of claims without one."""
    return [
        _row(judgement, effect, metric) for judgement in judgements for effect in judgement.effects
    ]


def _row(judgement: Judgement, effect: Effect, metric: str) -> dict[str, Any]:
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
        "claim_p": judgement.p_value,
        "claim_not_made": judgement.not_made,
    }


def _kind(claim: Claim) -> str:
    if claim.value is not None:
        return "value"
    return "difference" if claim.ratio is None else "ratio"


def _number(number: float) -> float | None:
    return number if isfinite(number) else None
