"""The report on claims: a summary, every comparison, and what was claimed, for people."""

from collections.abc import Sequence
from math import isfinite, isnan

from fedstage.results.claims.verdicts import Effect, Judgement, stated_range
from fedstage.results.tables import html, markdown
from fedstage.results.tables.labels import NOTHING

Lines = list[list[str]]

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
    judgements: Sequence[Judgement], title: str, source: str, notes: Sequence[str]
) -> str:
    """Return the report as a Markdown document."""
    legend = [f"- {line}" for line in [*_LEGEND, *notes]]
    parts = [
        f"# {title}",
        source,
        markdown.grid(_SUMMARY, _summary(judgements), len(_SUMMARY)),
        "\n".join(f"- {line}" for line in _texts(judgements)),
        "## Comparisons",
        markdown.grid(_COMPARISONS, _comparisons(judgements), 2),
        "\n".join(legend),
    ]
    return "\n\n".join(parts) + "\n"


def render_report_html(
    judgements: Sequence[Judgement], title: str, source: str, notes: Sequence[str]
) -> str:
    """Return the report as an HTML document."""
    parts = [
        f"<p>{html.inline(source)}</p>",
        html.grid(_SUMMARY, _summary(judgements), len(_SUMMARY)),
        html.items(_texts(judgements)),
        "<h3>Comparisons</h3>",
        html.grid(_COMPARISONS, _comparisons(judgements), 2),
        html.items([*_LEGEND, *notes]),
    ]
    return html.page(title, parts)


def _summary(judgements: Sequence[Judgement]) -> Lines:
    return [[one.claim.id, one.claim.place, _published(one), one.verdict] for one in judgements]


def _texts(judgements: Sequence[Judgement]) -> list[str]:
    return [f"**{one.claim.id}**: {one.claim.text}" for one in judgements]


def _published(one: Judgement) -> str:
    """Write ``yes``, or in how many of its comparisons the claim holds."""
    if one.published_holds is None:
        return NOTHING
    known = [effect.published_holds for effect in one.effects if effect.published_holds is not None]
    answer = "yes" if one.published_holds else "no"
    return f"{answer} ({sum(known)} of {len(known)})"


def _comparisons(judgements: Sequence[Judgement]) -> Lines:
    return [_line(one, effect) for one in judgements for effect in one.effects]


def _line(one: Judgement, effect: Effect) -> list[str]:
    interval = effect.measured
    low, high = _number(one, interval.low), _number(one, interval.high)
    between = "" if isnan(interval.low) else f" [{low}, {high}]"
    return [
        one.claim.id,
        effect.label + _bound(one),
        _reported(one, effect),
        NOTHING if isnan(interval.mean) else _number(one, interval.mean) + between,
        str(interval.n),
        effect.verdict,
    ]


def _reported(one: Judgement, effect: Effect) -> str:
    """Write the effect in the paper's means, or what its text states: ``3.60 to 4.30``."""
    stated = stated_range(one.claim)
    if effect.published is not None or stated is None:
        return NOTHING if effect.published is None else _number(one, effect.published)
    return " to ".join(_number(one, end) for end in dict.fromkeys(stated))


def _bound(one: Judgement) -> str:
    """Write what the comparison is claimed to be: ``> 0``, or ``≥ 1, ≤ 1.1``."""
    low, high = one.claim.bounds
    if one.claim.than is not None:
        return " > 0" if low == 0 else " < 0"
    signs = (("≥", low), ("≤", high))
    return " " + ", ".join(f"{sign} {end:g}" for sign, end in signs if isfinite(end))


def _number(one: Judgement, number: float) -> str:
    absolute = one.claim.ratio is not None or one.claim.value is not None
    sign = "" if absolute else "+"
    return f"{number:{sign}.2f}".replace("-", "−")
