"""The report on claims for people: a summary, the claims, and every comparison."""

from collections.abc import Sequence
from math import isfinite, isnan
from types import ModuleType

from fedstage.results.claims.effects import HOLDS, UNDECIDED, Effect, stated_range
from fedstage.results.claims.table import Line, lines_of
from fedstage.results.claims.verdicts import Judgement
from fedstage.results.intervals import Interval
from fedstage.results.tables import markdown
from fedstage.results.tables.labels import NOTHING

_SUMMARY = [
    *("Claim", "In the paper", "Published numbers", "Measured", "Comparisons", "p (corrected)"),
    *("Kind", "The paper's own tests"),
]
_LEAST = 0.001  # smaller p-values are written as smaller than this
_COMPARISONS = [
    *("Claim", "Comparison", "Published", "Measured [95 %]", "Seeds", "Verdict"),
    *("With test images [95 %]", "p in the paper (Welch)"),
]
_LEGEND = [
    "**Published numbers**: whether the claim holds in the paper's own means, or in what its text "
    f"states, over the comparisons below that it has numbers for; {NOTHING} where it has none.",
    "**Measured**: `holds` if the effect is as claimed in every comparison, `holds where measured` "
    "if that is all that can be said because others of the paper's comparisons were not made, "
    "`contradicted` if it is not in one, `practically nil` if every difference is within the "
    "claim's margin, each with p at most 0.05; else `undecided`, with the seeds that would decide "
    "it at the published effect (with probability 0.8). One seed decides nothing. `not measured`: "
    "no cells at this scale.",
    "**p (corrected)**: of paired t-tests over seeds. A claim holds with the p-value of its "
    "weakest comparison; it is contradicted with that of the strongest one against it, times the "
    "number of comparisons (Bonferroni); it is practically nil with that of two one-sided tests "
    "(TOST). *Primary* claims are judged on the mean over their cells and corrected by Holm's "
    "method over the paper's primary claims: all their verdicts are right together with 95 %. The "
    "others are *exploratory*, and corrected over the paper's others by Benjamini and Hochberg's: "
    "5 % of their verdicts are expected to be wrong. Claims of the paper that are not in this "
    "report count as not significant.",
    "**Verdict** of a comparison: that of its own p-values, without any correction: where there is "
    "no difference, each interval is on the wrong side with 2.5 %. Cells of a primary claim are "
    "tested only if the claim is decided, with Holm's correction among them; else `not tested`.",
    "**With test images**: the interval over seeds and the draw of test images together, at most: "
    "with the binomial variance of both accuracies.",
    "**The paper's own tests**: Welch's t-tests of its printed means, deviations and seeds, with "
    "Holm's correction over the comparisons of the claim.",
    "Comparisons are paired: with the same seed, both sides have the same partition, participants "
    "and initial weights.",
]
_LIMITS = (
    "**≤, ≥**: some runs ended below their goal, and count with what they had communicated by "
    "then. So the effect of these seeds is at most, or at least, the one that is shown. A claim is "
    "not decided by limits on the wrong side, and seeds of which neither side reached the goal "
    "are left out."
)


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
    comparisons = [_line(line) for judgement in judgements for line in lines_of(judgement)]
    notes = [*(_looks(judgement) for judgement in judgements[:1] if judgement.looks), *notes]
    limited = any(_sign(line.effect) for one in judgements for line in lines_of(one))
    notes = [_LIMITS, *notes] if limited else notes
    return [
        writer.paragraph(source),
        writer.grid(_SUMMARY, summary, len(_SUMMARY)),
        writer.items(
            [
                f"**{judgement.claim.id}**: {judgement.claim.text}{_left_out(judgement)}"
                for judgement in judgements
            ]
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
        verdict_text(judgement),
        _count(judgement),
        p_text(judgement.p_verdict) if judgement.made else NOTHING,
        "primary" if judgement.claim.primary else "exploratory",
        NOTHING if judgement.evidence is None else str(judgement.evidence),
    ]


def verdict_text(judgement: Judgement) -> str:
    """Write a verdict: ``undecided after 3 seeds, would need 12``."""
    if judgement.verdict != UNDECIDED:
        return judgement.verdict
    text = f"undecided after {seeds_text(judgement.seeds)}"
    looks = judgement.looks
    if later := [look for look in looks if look > judgement.seeds]:
        text += f", {'first' if later[0] == looks[0] else 'next'} look at {later[0]}"
    if judgement.needed is None:
        return text
    return f"{text}, would need {judgement.needed}"


def seeds_text(number: int) -> str:
    """Write a number of seeds: ``1 seed``."""
    return f"{number} seed" if number == 1 else f"{number} seeds"


def _left_out(judgement: Judgement) -> str:
    """Write how many comparisons are missing in the claim's source."""
    if not judgement.left_out:
        return ""
    return (
        f" Left out: {judgement.left_out} comparisons with a cell for which the paper prints no "
        "number."
    )


def _looks(judgement: Judgement) -> str:
    """Name the looks of a file of claims, and their effect on p-values."""
    numbers = ", ".join(map(str, judgement.looks))
    return (
        f"Claims are judged at {numbers} seeds, by bounds that spend the error as O'Brien and "
        "Fleming's do (Lan and DeMets 1983): p-values are the smallest errors with whose bounds "
        "the t-test decides at this look. Between two looks, the seeds of the earlier one count."
    )


def p_text(p_value: float) -> str:
    """Write a p-value with three digits: ``0.012``, or ``< 0.001``."""
    return f"{p_value:.3f}" if p_value >= _LEAST else f"< {_LEAST}"


def _count(judgement: Judgement) -> str:
    """Write in how many comparisons a claim holds: ``holds in 4 of 4 made, 32 not made``."""
    if not judgement.made:
        return f"{judgement.not_made} not made"
    missing = f", {judgement.not_made} not made" if judgement.not_made else ""
    if judgement.claim.primary or judgement.claim.quantifier == "mean":
        return judgement.made[0].label + missing
    held = sum(effect.verdict == HOLDS for effect in judgement.made)
    return f"holds in {held} of {len(judgement.made)} made{missing}"


def _published(judgement: Judgement) -> str:
    """Write whether a claim holds in the published numbers: ``no (2 of 3)``."""
    if judgement.published_holds is None:
        return NOTHING
    known = [
        effect.published_holds for effect in judgement.effects if effect.published_holds is not None
    ]
    answer = "yes" if judgement.published_holds else "no"
    return f"{answer} ({sum(known)} of {len(known)})"


def _line(line: Line) -> list[str]:
    judgement, effect = line.judgement, line.effect
    over_images, (own, _) = effect.over_images, line.published_p
    return [
        judgement.claim.id,
        effect.shown + bound_text(judgement),
        reported(judgement, effect),
        measured_text(judgement, effect),
        str(effect.measured.n),
        effect.verdict,
        (between(judgement, over_images).strip() or NOTHING) if over_images else NOTHING,
        NOTHING if own is None else p_text(own),
    ]


def measured_text(judgement: Judgement, effect: Effect) -> str:
    """Write a mean with its interval, a limit with its sign; `NOTHING` if nothing is measured."""
    interval = effect.measured
    if isnan(interval.mean):
        return NOTHING
    return _sign(effect) + number_text(judgement, interval.mean) + between(judgement, interval)


def _sign(effect: Effect) -> str:
    """Return the sign of a limit, with a space; nothing for an effect that is known."""
    if effect.at_most and effect.at_least:
        return "≶ "
    return "≤ " if effect.at_most else "≥ " if effect.at_least else ""


def between(judgement: Judgement, interval: Interval) -> str:
    """Write the bounds of an interval, after a space; nothing for a single value."""
    if isnan(interval.low):
        return ""
    return f" [{number_text(judgement, interval.low)}, {number_text(judgement, interval.high)}]"


def reported(judgement: Judgement, effect: Effect) -> str:
    """Write the effect in the paper's means, or the range that its text states."""
    stated = stated_range(judgement.claim)
    if effect.published is not None or stated is None:
        return NOTHING if effect.published is None else number_text(judgement, effect.published)
    return " to ".join(number_text(judgement, end) for end in dict.fromkeys(stated))


def bound_text(judgement: Judgement) -> str:
    """Write the claimed bounds of a comparison: ``> 0``, or ``≥ 1, ≤ 1.1``."""
    low, high = judgement.claim.bounds
    if judgement.claim.than is not None:
        return " > 0" if low == 0 else " < 0"
    signs = (("≥", low), ("≤", high))
    return " " + ", ".join(f"{sign} {end:g}" for sign, end in signs if isfinite(end))


def number_text(judgement: Judgement, number: float) -> str:
    """Write an effect, a difference with its sign."""
    absolute = judgement.claim.ratio is not None or judgement.claim.value is not None
    sign = "" if absolute else "+"
    return f"{number:{sign}.2f}".replace("-", "−")
