"""Judgements on claims: exact numbers, one row per effect, and a report for people."""

from collections.abc import Callable, Iterable, Sequence
from math import isfinite, isnan
from types import ModuleType
from typing import Any

import pyarrow as pa

from fedstage.results.claims.verdicts import (
    HOLDS,
    UNDECIDED,
    Effect,
    Judgement,
    p_of_verdict,
    printed,
    stated_range,
)
from fedstage.results.intervals import LEVEL, holm
from fedstage.results.tables import markdown
from fedstage.results.tables.labels import NOTHING
from fedstage.settings.scores import Claim

_SUMMARY = [
    *("Claim", "In the paper", "Published numbers", "The paper's own tests"),
    *("Measured", "Comparisons", "p"),
]
_COMPARISONS = [
    *("Claim", "Comparison", "Published", "p (Welch)", "Measured [95 %]", "Seeds", "p", "Verdict"),
]
_LEAST = 0.001  # smaller p-values are written as smaller than this
_LEGEND = [
    "**Published numbers**: whether the claim holds in the paper's own means, or in what its text "
    f"states, over the comparisons below that it has numbers for; {NOTHING} where it has none.",
    "**The paper's own tests**: Welch's t-tests of its printed means, deviations and seeds, with "
    "Holm's correction over the comparisons of the claim.",
    "**Measured**: `holds` if the effect is as claimed in every comparison, `contradicted` if it "
    "is not in one, `practically nil` if it is within the claim's margin in every comparison, each "
    "with p at most 0.05; else `undecided`, as always with one seed. A claim about an average is "
    "judged on the mean over its comparisons alone.",
    "**Comparisons**: how many of the paper's comparisons were measured. A verdict is about these.",
    "**p**: of paired t-tests over seeds; at most 0.05 where the 95 % interval is on one side of "
    "the claimed bound, or within the margin, as a whole. A claim holds, or is practically nil, "
    "with the p-value of its weakest comparison; it is contradicted with that of the strongest one "
    "against it, times the number of comparisons (Bonferroni). Holm's method corrects the primary "
    "claims of a paper: all their verdicts are right together with 95 %. Primary claims that are "
    "not measured here count as not significant; other claims and single comparisons are not "
    "corrected.",
    "Comparisons are paired: with the same seed, both sides have the same partition, participants "
    "and initial weights.",
]

#: The columns: name, type, value of a line, and whether there may be none.
_TEXT, _NUMBER, _COUNT, _YES = pa.string(), pa.float64(), pa.int64(), pa.bool_()
_COLUMNS: list[tuple[str, pa.DataType, Callable[[Judgement, Effect], Any], bool]] = [
    ("claim", _TEXT, lambda one, _: one.claim.id, False),
    ("place", _TEXT, lambda one, _: one.claim.place, False),  # in the paper
    ("primary", _YES, lambda one, _: one.claim.primary, False),
    ("quantifier", _TEXT, lambda one, _: one.claim.quantifier, False),  # "all" or "mean"
    ("metric", _TEXT, lambda one, _: one.claim.metric, False),
    ("comparison", _TEXT, lambda _, effect: effect.label, False),  # which cells, or their mean
    ("effect", _TEXT, lambda one, _: _kind(one.claim), False),
    # The bounds of the claimed effect, and the margin within which it is practically nil.
    ("claimed_low", _NUMBER, lambda one, _: one.claim.bounds[0], True),
    ("claimed_high", _NUMBER, lambda one, _: one.claim.bounds[1], True),
    ("margin", _NUMBER, lambda one, _: one.claim.margin, True),
    # The effect in the paper's means, or in its text, and the p-value of Welch's test of them.
    ("published", _NUMBER, lambda _, effect: effect.published, True),
    ("stated_low", _NUMBER, lambda one, _: (stated_range(one.claim) or (None,))[0], True),
    ("stated_high", _NUMBER, lambda one, _: (stated_range(one.claim) or (None,))[-1], True),
    ("published_holds", _YES, lambda _, effect: effect.published_holds, True),
    ("published_p", _NUMBER, lambda _, effect: effect.published_p, True),
    # The effect over seeds, its 95 % confidence interval, and its own verdict.
    ("seeds", _COUNT, lambda _, effect: effect.measured.n, False),
    ("mean", _NUMBER, lambda _, effect: effect.measured.mean, True),
    ("low", _NUMBER, lambda _, effect: effect.measured.low, True),
    ("high", _NUMBER, lambda _, effect: effect.measured.high, True),
    ("p", _NUMBER, lambda _, effect: p_of_verdict(effect.p), False),
    ("verdict", _TEXT, lambda _, effect: effect.verdict, False),
    # Of the whole claim, the same in each of its rows; p is corrected (Holm) for a primary one.
    ("claim_published_holds", _YES, lambda one, _: one.published_holds, True),
    ("claim_p", _NUMBER, lambda one, _: p_of_verdict(one.p) if one.p else 1.0, False),
    ("claim_verdict", _TEXT, lambda one, _: one.verdict, False),
    ("claim_measured", _COUNT, lambda one, _: one.measured, False),
    ("claim_comparisons", _COUNT, lambda one, _: one.total, False),
]
SCHEMA = pa.schema([pa.field(name, kind, nullable=none) for name, kind, _, none in _COLUMNS])


def claim_rows(judgements: Iterable[Judgement], metric: str) -> list[dict[str, Any]]:
    """Return one row per effect of each claim; `metric` is the metric of claims without one."""
    rows = [
        {name: _known(value(one, effect)) for name, _, value, _ in _COLUMNS}
        for one in judgements
        for effect in _effects(one)
    ]
    return [row | {"metric": row["metric"] or metric} for row in rows]


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
    lines = [_line(one, effect) for one in judgements for effect in _effects(one)]
    texts = [f"**{one.claim.id}**: {one.claim.text}" for one in judgements]
    return [
        writer.paragraph(source),
        writer.grid(_SUMMARY, [_summary(one) for one in judgements], len(_SUMMARY)),
        writer.items(texts),
        writer.heading("Comparisons"),
        writer.grid(_COMPARISONS, lines, 2),
        writer.items([*_LEGEND, *notes]),
    ]


def _summary(judgement: Judgement) -> list[str]:
    claim = judgement.claim
    return [
        claim.id + (" (primary)" if claim.primary else ""),
        claim.place,
        in_published(judgement),
        own_tests(judgement),
        verdict_text(judgement),
        f"{judgement.measured} of {judgement.total}{_held(judgement)}",
        p_text(p_of_verdict(judgement.p)) if judgement.p else NOTHING,
    ]


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
    p_values = [effect.published_p or 0.0 for effect in tests.values()]
    pairs = zip(tests.values(), p_values, holm(p_values), strict=True)
    claimed = [(p, adjusted) for effect, p, adjusted in pairs if effect.published_holds]
    return (
        f"{len(claimed)} of {len(tests)} as claimed, {sum(p <= LEVEL for p, _ in claimed)} with "
        f"p ≤ {LEVEL:g}, {sum(adjusted <= LEVEL for _, adjusted in claimed)} after Holm"
    )


def verdict_text(judgement: Judgement) -> str:
    """Write a verdict: ``undecided after 3 seeds``."""
    if judgement.verdict != UNDECIDED:
        return judgement.verdict
    return f"{UNDECIDED} after {seeds_text(judgement.seeds)}"


def seeds_text(number: int) -> str:
    """Write a number of seeds: ``1 seed``."""
    return f"{number} seed" if number == 1 else f"{number} seeds"


def _held(judgement: Judgement) -> str:
    """Write in how many comparisons a claim about all of them holds, unless it does in all."""
    held = sum(effect.verdict == HOLDS for effect in judgement.comparisons)
    if judgement.mean is not None or held == judgement.measured:
        return ""
    return f", holds in {held}"


def _line(judgement: Judgement, effect: Effect) -> list[str]:
    return [
        judgement.claim.id,
        effect.shown + bound_text(judgement.claim),
        published_text(judgement.claim, effect),
        NOTHING if effect.published_p is None else p_text(effect.published_p),
        measured_text(judgement.claim, effect),
        str(effect.measured.n),
        p_text(p_of_verdict(effect.p)) if effect.values else NOTHING,
        effect.verdict,
    ]


def measured_text(claim: Claim, effect: Effect) -> str:
    """Write a mean with its interval; `NOTHING` if nothing is measured."""
    mean, low, high = effect.measured.mean, effect.measured.low, effect.measured.high
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


def p_text(p_value: float) -> str:
    """Write a p-value with three digits: ``0.012``, or ``< 0.001``."""
    return f"{p_value:.3f}" if p_value >= _LEAST else f"< {_LEAST}"


def _number(claim: Claim, number: float) -> str:
    """Write an effect, a difference with its sign."""
    sign = "" if claim.ratio is not None or claim.value is not None else "+"
    return f"{number:{sign}.2f}".replace("-", "−")
