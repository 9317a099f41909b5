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
    "states, over those of the comparisons below that it has numbers "  # prose: ok
    f"for; {NOTHING} where it has none.",
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
    summary = [_summary(judgement) for judgement in judgements]
    comparisons = [
        _line(judgement, effect) for judgement in judgements for effect in judgement.effects
    ]
    return [
        writer.paragraph(source),
        writer.grid(_SUMMARY, summary, len(_SUMMARY)),
        writer.items(
            [f"**{judgement.claim.id}**: {judgement.claim.text}" for judgement in judgements]
        ),
        writer.heading("Comparisons"),
        writer.grid(_COMPARISONS, comparisons, 2),
        writer.items([*_LEGEND, *notes]),
    ]


def _summary(judgement: Judgement) -> list[str]:
    return [
        judgement.claim.id,
        judgement.claim.place,
        _published(judgement),
        judgement.verdict,
        _count(judgement),
        p_text(judgement.p_value) if judgement.made else NOTHING,
    ]


def p_text(p_value: float) -> str:
    """Write a p-value with three digits: ``0.012``, or ``< 0.001``."""
    return f"{p_value:.3f}" if p_value >= _LEAST else f"< {_LEAST}"


def _count(judgement: Judgement) -> str:
    """Write in how many comparisons a claim holds: ``holds in 4 of 4 made, 32 not made``."""
    if not judgement.made:
        return f"{judgement.not_made} not made"
    missing = f", {judgement.not_made} not made" if judgement.not_made else ""
    if judgement.claim.quantifier == "mean":
        return judgement.made[0].label + missing
    held = sum(effect.verdict == HOLDS for effect in judgement.made)
    return f"holds in {held} of {len(judgement.made)} made{missing}"


def _published(judgement: Judgement) -> str:
    """Write whether the claim holds in the published numbers: ``no (2 of 3)``."""
    if judgement.published_holds is None:
        return NOTHING
    known = [
        effect.published_holds for effect in judgement.effects if effect.published_holds is not None
    ]
    answer = "yes" if judgement.published_holds else "no"
    return f"{answer} ({sum(known)} of {len(known)})"


def _line(judgement: Judgement, effect: Effect) -> list[str]:
    interval = effect.measured
    low, high = _number(judgement, interval.low), _number(judgement, interval.high)
    between = "" if isnan(interval.low) else f" [{low}, {high}]"
    return [
        judgement.claim.id,
        effect.shown + _bound(judgement),
        _reported(judgement, effect),
        NOTHING if isnan(interval.mean) else _number(judgement, interval.mean) + between,
        str(interval.n),
        effect.verdict,
    ]


def _reported(judgement: Judgement, effect: Effect) -> str:
    """Write the effect in the paper's means, or the range that its text states."""
    stated = stated_range(judgement.claim)
    if effect.published is not None or stated is None:
        return NOTHING if effect.published is None else _number(judgement, effect.published)
    return " to ".join(_number(judgement, end) for end in dict.fromkeys(stated))


def _bound(judgement: Judgement) -> str:
    """Write the claimed bounds of a comparison: ``> 0``, or ``≥ 1, ≤ 1.1``."""
    low, high = judgement.claim.bounds
    if judgement.claim.than is not None:
        return " > 0" if low == 0 else " < 0"
    signs = (("≥", low), ("≤", high))
    return " " + ", ".join(f"{sign} {end:g}" for sign, end in signs if isfinite(end))


def _number(judgement: Judgement, number: float) -> str:
    absolute = judgement.claim.ratio is not None or judgement.claim.value is not None
    sign = "" if absolute else "+"
    return f"{number:{sign}.2f}".replace("-", "−")
