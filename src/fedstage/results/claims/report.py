"""The report on claims for people: a summary, the claims, and every comparison."""

from collections.abc import Sequence
from math import isfinite, isnan
from types import ModuleType

from fedstage.results.claims.verdicts import Effect, Judgement, stated_range
from fedstage.results.tables import markdown
from fedstage.results.tables.labels import NOTHING

_SUMMARY = ["Claim", "In the paper", "Published numbers", "Measured"]
_COMPARISONS = ["Claim", "Comparison", "Published", "Measured [95 %]", "Seeds", "Verdict"]
_LEGEND = [
    "**Published numbers**: whether the claim holds in the paper's own means, or in what its text "
    f"states, over those of the comparisons below that it has numbers for; {NOTHING} where it has "
    "none.",
    "**Measured**: `holds` if the 95 % confidence interval (Student's t over seeds) is wholly on "
    "the claimed side in every comparison, `contradicted` if it is wholly on the other side in "
    "one, else `undecided`; one seed decides nothing. `not measured`: no cells at this scale.",
    "With many comparisons, one is on the wrong side by chance more often than with one: each with "
    "2.5 % where there is no difference.",
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
    summary = [[one.claim.id, one.claim.place, _published(one), one.verdict] for one in judgements]
    comparisons = [_line(one, effect) for one in judgements for effect in one.effects]
    text: str = writer.page(
        title,
        [
            writer.paragraph(source),
            writer.grid(_SUMMARY, summary, len(_SUMMARY)),
            writer.items([f"**{one.claim.id}**: {one.claim.text}" for one in judgements]),
            writer.heading("Comparisons"),
            writer.grid(_COMPARISONS, comparisons, 2),
            writer.items([*_LEGEND, *notes]),
        ],
    )
    return text


def _published(one: Judgement) -> str:
    """Write whether the claim holds in the published numbers: ``no (2 of 3)``."""
    if one.published_holds is None:
        return NOTHING
    known = [effect.published_holds for effect in one.effects if effect.published_holds is not None]
    answer = "yes" if one.published_holds else "no"
    return f"{answer} ({sum(known)} of {len(known)})"


def _line(one: Judgement, effect: Effect) -> list[str]:
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
