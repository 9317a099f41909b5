"""All claims on an experiment, judged by its scores and costs, as tables and exact numbers."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import isfinite, isnan
from typing import Any

import pandas as pd

from fedstage.results.labels import NOTHING, axis_label, p_text
from fedstage.results.measures import cells_of
from fedstage.results.regime import converging, is_outside
from fedstage.results.statistics import LEVEL, holm
from fedstage.results.table import Table
from fedstage.results.tidy import METHOD, Header, Tidy
from fedstage.results.verdicts import (
    HOLDS,
    UNDECIDED,
    Effect,
    Judgement,
    correct,
    judge,
    p_of_verdict,
    printed,
    stated_range,
)
from fedstage.settings.scores import SECONDS, Axis, Claim, ClaimsToJudge

_LEGEND = [
    "**Measured**: `holds` if the effect is as claimed in every comparison, `contradicted` if it "
    "is not in one, `practically nil` if it is within the claim's margin in all, each with p at "
    "most 0.05; else `undecided`. A claim about an average is judged on the mean alone. "
    "`another regime`: contradicted where clients or rounds do not converge as in the paper.",
    "**p**: of paired t-tests over seeds (`practically nil`: two, of equivalence); of a claim's "
    "weakest comparison, or of the strongest one against it times their number (Bonferroni). "
    "Primary claims of a paper are corrected together (Holm); those that are not measured count as "
    "not significant.",
    "**Published**: in how many comparisons the claim holds in the paper's means, or in its text. "
    "**Its tests**: Welch's, of its printed means, deviations and seeds, Holm's correction within "
    "the claim.",
]

#: The exact columns: the value of a line, by name.
_COLUMNS: dict[str, Callable[[Judgement, Effect], Any]] = {
    "claim": lambda one, _: one.claim.id,
    "place": lambda one, _: one.claim.place,
    "primary": lambda one, _: one.claim.primary,
    "quantifier": lambda one, _: one.claim.quantifier,
    "metric": lambda one, _: one.claim.metric,
    "comparison": lambda _, effect: effect.label,
    "effect": lambda one, _: _kind(one.claim),
    "claimed_low": lambda one, _: one.claim.bounds[0],
    "claimed_high": lambda one, _: one.claim.bounds[1],
    "margin": lambda one, _: one.claim.margin,
    "published": lambda _, effect: effect.published,
    "stated_low": lambda one, _: (stated_range(one.claim) or (None,))[0],
    "stated_high": lambda one, _: (stated_range(one.claim) or (None,))[-1],
    "published_holds": lambda _, effect: effect.published_holds,
    "published_p": lambda _, effect: effect.published_p,
    "seeds": lambda _, effect: effect.measured.n,
    "mean": lambda _, effect: effect.measured.mean,
    "low": lambda _, effect: effect.measured.low,
    "high": lambda _, effect: effect.measured.high,
    "p": lambda _, effect: p_of_verdict(effect.p),
    "verdict": lambda _, effect: effect.verdict,
    # Of the whole claim, the same in each of its rows; p is corrected (Holm) for a primary one.
    "claim_published_holds": lambda one, _: one.published_holds,
    "claim_p": lambda one, _: p_of_verdict(one.p) if one.p else 1.0,
    "claim_verdict": lambda one, _: one.verdict,
    "claim_measured": lambda one, _: one.measured,
    "claim_comparisons": lambda one, _: one.total,
}


def judge_claims(
    listed: ClaimsToJudge, scores: Tidy, costs: Tidy | None = None, *, corrected: bool = True
) -> list[Judgement]:
    """Judge each claim by the last evaluated round of each run, or by costs or forgetting."""
    header, judged = scores.header, []

    def shown(point: Mapping[str, Axis]) -> dict[str, Axis]:
        return {
            axis_label(axis): header.labels.get(str(value), value) if axis == METHOD else value
            for axis, value in point.items()
        }

    regimes = any(claim.regime is not None for claim in listed.claims)
    converged = converging(scores) if regimes else pd.DataFrame()
    for claim in listed.claims:
        metric = claim.metric or header.metric
        cells = cells_of(scores, metric, costs)
        one = judge(claim, cells, shown, listed.comparisons.get(claim.id))
        if claim.regime is not None and metric not in SECONDS:
            measured = [effect for effect in one.comparisons if effect.values]
            axes = [cell.axes for effect in measured for pair in effect.pairs for cell in pair]
            outside = is_outside(claim.regime, converged, header, axes)
            one = replace(one, outside=outside)
        judged.append(one)
    return correct(judged, listed.families) if corrected else judged


def claim_rows(judgements: Iterable[Judgement], metric: str) -> pd.DataFrame:
    """Return one row per effect of each claim; `metric` is the metric of claims without one."""
    rows = [
        {name: _known(value(one, effect)) for name, value in _COLUMNS.items()}
        for one in judgements
        for effect in _effects(one)
    ]
    return pd.DataFrame([row | {"metric": row["metric"] or metric} for row in rows])


def claim_tables(judgements: Sequence[Judgement], header: Header) -> list[Table]:
    """Return the claims with their verdicts, and all their comparisons."""
    exact = claim_rows(judgements, header.metric)
    summary = pd.DataFrame(
        {
            "Claim": f"{one.claim.text}{' (primary)' if one.claim.primary else ''}",
            "Place": one.claim.place,
            "Published": in_published(one),
            "Its tests": own_tests(one),
            "Measured": verdict_text(one),
            "Comparisons": f"{one.measured} of {one.total}{_held(one)}",
            "p": p_text(p_of_verdict(one.p)) if one.p else NOTHING,
        }
        for one in judgements
    )
    lines = pd.DataFrame(
        {
            "Claim": one.claim.id,
            "Comparison": effect.shown + bound_text(one.claim),
            "Published": published_text(one.claim, effect),
            "p (Welch)": NOTHING if effect.published_p is None else p_text(effect.published_p),
            "Measured [95 %]": measured_text(one.claim, effect),
            "Seeds": str(effect.measured.n),
            "p": p_text(p_of_verdict(effect.p)) if effect.values else NOTHING,
            "Verdict": effect.verdict,
        }
        for one in judgements
        for effect in _effects(one)
    )
    title = f"{header.title}: claims"
    about = [header.measured_at] if header.measured_at else []
    return [
        Table(title, summary, len(summary.columns), exact, above=about, below=_LEGEND),
        Table("Comparisons", lines, 2, exact),
    ]


def _effects(judgement: Judgement) -> list[Effect]:
    """Return the effects of a claim: the mean, if there is one, and then each comparison."""
    return [*([judgement.mean] if judgement.mean else []), *judgement.comparisons]


def _kind(claim: Claim) -> str:
    if claim.value is not None:
        return "value"
    return "difference" if claim.ratio is None else "ratio"


def _known(value: Any) -> Any:
    """Return a value, None for a number that is not finite."""
    return None if isinstance(value, float) and not isfinite(value) else value


# --- texts ----------------------------------------------------------------------------------------


def in_published(judgement: Judgement) -> str:
    """Write whether a claim holds in the published numbers: ``no (2 of 3)``."""
    if judgement.published_holds is None:
        return NOTHING
    known = [one.published_holds for one in judgement.effects if one.published_holds is not None]
    return f"{'yes' if judgement.published_holds else 'no'} ({sum(known)} of {len(known)})"


def own_tests(judgement: Judgement) -> str:
    """Write what Welch's tests of the printed numbers find; the same numbers are one test."""
    tests = {
        tuple(map(printed, effect.pairs[0])): effect
        for effect in judgement.comparisons
        if effect.published_p is not None
    }
    if not tests:
        return NOTHING
    adjusted = holm([effect.published_p or 0.0 for effect in tests.values()])
    claimed = [p for effect, p in zip(tests.values(), adjusted, strict=True)
               if effect.published_holds]  # fmt: skip
    return (
        f"{len(claimed)} of {len(tests)} as claimed, {sum(p <= LEVEL for p in claimed)} significant"
    )


def verdict_text(judgement: Judgement) -> str:
    """Write a verdict: ``undecided after 3 seeds``."""
    if judgement.verdict != UNDECIDED:
        return judgement.verdict
    return f"{UNDECIDED} after {judgement.seeds} seed{'s' * (judgement.seeds != 1)}"


def _held(judgement: Judgement) -> str:
    """Write in how many comparisons a claim about all of them holds, unless it does in all."""
    held = sum(effect.verdict == HOLDS for effect in judgement.comparisons)
    if judgement.mean is not None or held == judgement.measured:
        return ""
    return f", holds in {held}"


def measured_text(claim: Claim, effect: Effect) -> str:
    """Write a mean with its interval; `NOTHING` if nothing is measured."""
    mean, low, high = effect.measured[:3]
    if isnan(mean):
        return NOTHING
    between = "" if isnan(low) else f" [{_number(claim, low)}, {_number(claim, high)}]"
    return _number(claim, mean) + between


def published_text(claim: Claim, effect: Effect) -> str:
    """Write the effect in the paper's means, or the range that its text states."""
    if effect.published is not None:
        return _number(claim, effect.published)
    stated = stated_range(claim)
    return " to ".join(_number(claim, end) for end in dict.fromkeys(stated)) if stated else NOTHING


def bound_text(claim: Claim) -> str:
    """Write the claimed bounds of a comparison: ``> 0``, or ``≥ 1, ≤ 1.1``."""
    low, high = claim.bounds
    if claim.than is not None:
        return " > 0" if low == 0 else " < 0"
    signs = (("≥", low), ("≤", high))
    return " " + ", ".join(f"{sign} {end:g}" for sign, end in signs if isfinite(end))


def _number(claim: Claim, number: float) -> str:
    """Write an effect, a difference with its sign."""
    sign = "" if claim.ratio is not None or claim.value is not None else "+"
    return f"{number:{sign}.2f}".replace("-", "−")
