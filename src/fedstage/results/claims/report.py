"""The report on claims for people: a summary, the claims, and every comparison."""

from collections.abc import Sequence
from math import isfinite, isnan
from types import ModuleType

from fedstage.results.claims.verdicts import HOLDS, Effect, Judgement, stated_range
from fedstage.results.tables import markdown
from fedstage.results.tables.labels import NOTHING

_SUMMARY = ["Claim", "In the paper", "Published numbers", "Measured", "Comparisons", "p (Holm)"]
_LEAST = 0.001  # smaller p-values are written as smaller than this
_COMPARISONS = ["Claim", "Comparison", "Published", "Measured [95 %]", "Seeds", "Verdict"]
_LEGEND = [
    "**Published numbers**: whether the claim holds in the paper's own means, or in what its text "
    f"states, over those of the comparisons below that it has numbers for; {NOTHING} where it has "
    "none.",
    "**Measured**: `holds` if the effect is as claimed in every comparison, `holds where measured` "
    "if that is all that can be said because others of the paper's comparisons were not made, "
    "`contradicted` if it is not in one, each with p at most 0.05; else `undecided`. One seed "
    "decides nothing. `not measured`: no cells at this scale.",
    "**p (Holm)**: of paired t-tests over seeds. A claim holds with the p-value of its weakest "
    "comparison; it is contradicted with that of the strongest one against it, times the number "
    "of comparisons (Bonferroni). Over the claims of this report these are corrected by Holm's "
    "method, so that all verdicts are right together with 95 %.",
    "**Verdict** of a comparison: that of its own 95 % interval (Student's t over seeds), without "
    "any correction: where there is no difference, each interval is on the wrong side with 2.5 %.",
    "Comparisons are paired: with the same seed, both sides have the same partition, participants "
    "and initial weights.",
]


def render_report(
    judgements: Sequence[Judgement],
    title: str,
    source: str,
    notes: Sequence[str],
    writer: ModuleType = markdown,
) -> str:
    """Return the report as a document of `writer`, one of the modules `markdown` and `html`."""
    parts = report_parts(judgements, source, notes, writer)
    text: str = writer.page(title, parts)
    return text


def report_parts(
    judgements: Sequence[Judgement],
    source: str,
    notes: Sequence[str],
    writer: ModuleType = markdown,
) -> list[str]:
    """Return the parts of the report below its title, written by `writer`."""
    summary = [_summary(one) for one in judgements]
    comparisons = [_recipe(one, effect) for one in judgements for effect in one.effects]
    return [
        writer.paragraph(source),
        writer.grid(_SUMMARY, summary, len(_SUMMARY)),
        writer.items([f"**{one.claim.id}**: {one.claim.text}" for one in judgements]),
        writer.heading("Comparisons"),
        writer.grid(_COMPARISONS, comparisons, 2),
        writer.items([*_LEGEND, *notes]),
    ]


def _summary(one: Judgement) -> list[str]:
    return [
        one.claim.id,
        one.claim.place,
        _published(one),
        one.verdict,
        _count(one),
        p_text(one.p_value) if one.made else NOTHING,
    ]


def p_text(p_value: float) -> str:
    """Write a p-value with three digits: ``0.012``, or ``< 0.001``."""
    return f"{p_value:.3f}" if p_value >= _LEAST else f"< {_LEAST}"


def _count(one: Judgement) -> str:
    """Write in how many comparisons a claim holds: ``holds in 4 of 4 made, 32 not made``."""
    if not one.made:
        return f"{one.not_made} not made"
    missing = f", {one.not_made} not made" if one.not_made else ""
    if one.claim.quantifier == "mean":
        return one.made[0].label + missing
    held = sum(effect.verdict == HOLDS for effect in one.made)
    return f"holds in {held} of {len(one.made)} made{missing}"


def _published(one: Judgement) -> str:
    """Write whether the claim holds in the published numbers: ``no (2 of 3)``."""
    if one.published_holds is None:
        return NOTHING
    known = [effect.published_holds for effect in one.effects if effect.published_holds is not None]
    answer = "yes" if one.published_holds else "no"
    return f"{answer} ({sum(known)} of {len(known)})"


def _recipe(one: Judgement, effect: Effect) -> list[str]:
    interval = effect.measured
    low, high = _number(one, interval.low), _number(one, interval.high)
    between = "" if isnan(interval.low) else f" [{low}, {high}]"
    return [
        one.claim.id,
        effect.shown + _bound(one),
        _reported(one, effect),
        NOTHING if isnan(interval.mean) else _number(one, interval.mean) + between,
        str(interval.n),
        effect.verdict,
    ]


def _reported(one: Judgement, effect: Effect) -> str:
    """Write the effect in the paper's means, or the range that its text states."""
    stated = stated_range(one.claim)
    if effect.published is not None or stated is None:
        return NOTHING if effect.published is None else _number(one, effect.published)
    return " to ".join(_number(one, end) for end in dict.fromkeys(stated))


def _bound(one: Judgement) -> str:
    """Write the claimed bounds of a comparison: ``> 0``, or ``≥ 1, ≤ 1.1``."""
    low, high = one.claim.bounds
    if one.claim.than is not None:
        return " > 0" if low == 0 else " < 0"
    signs = (("≥", low), ("≤", high))
    return " " + ", ".join(f"{sign} {end:g}" for sign, end in signs if isfinite(end))


def _number(one: Judgement, number: float) -> str:
    absolute = one.claim.ratio is not None or one.claim.value is not None
    sign = "" if absolute else "+"
    return f"{number:{sign}.2f}".replace("-", "−")
