"""One page of all papers: their primary claims, the printed numbers, and the measured ones."""

from collections.abc import Sequence
from dataclasses import dataclass

from fedstage.results.claims.effects import NOT_MEASURED
from fedstage.results.claims.report import (
    bound_text,
    measured_text,
    reported,
    seeds_text,
    verdict_text,
)
from fedstage.results.claims.verdicts import Judgement
from fedstage.results.tables import markdown
from fedstage.results.tables.labels import NOTHING

_HEADS = ["Claim", "Published", "The paper's own tests", "Measured [95 %]", "Verdict"]
_ABOUT = (
    "The papers' primary claims as published, and as measured by small studies on two cores. The "
    "scale `{scale}` has smaller images and networks than the papers, and more seeds. `fedstage "
    "page` makes this page from the files of scores next to it, the "
    "[claims](../experiments.md#claims) that were declared beforehand, and the papers' printed "
    "numbers."
)
_LEGEND = [
    "**Published**: the mean effect over all cells of the claim that the paper prints, or what its "
    "text states.",
    "**The paper's own tests**: Welch's t-tests of its printed means, deviations and seeds; "
    "Holm's correction is over the comparisons of the claim. Two cells that stand for one printed "
    "number are one test.",
    "**Measured**: the mean effect over cells and seeds with its 95 % interval, in the cells that "
    "the study has. With ≤ or ≥ it is a limit, as some runs ended below their goal.",
    "**Verdict**: with Holm's correction over the primary claims of the paper, and for all looks. "
    "`practically nil` is within the margin of the claim; `undecided (regime)`: the study does not "
    "pass its own [gate](../experiments.md#gates).",
    "A verdict is about the study. A paper is neither confirmed nor refuted by it.",
]


@dataclass(frozen=True)
class Finding:
    """A primary claim: as published, and as measured if it was.

    `waiting` is what an unmeasured claim waits for, `tables` are links to the measurements, in
    Markdown, and `regime` is the reason why these decide nothing.
    """

    published: Judgement
    measured: Judgement | None
    waiting: str
    tables: str = ""
    regime: str | None = None


@dataclass(frozen=True)
class Section:
    """A paper: its title, its primary claims, and a picture of the measurements.

    `others` are links to further experiments on which the study has results, in Markdown; a
    `remark` qualifies what was measured.
    """

    title: str
    findings: Sequence[Finding]
    picture: str | None = None
    others: Sequence[str] = ()
    remark: str | None = None


def render_overview(sections: Sequence[Section], scale: str) -> str:
    """Return the page as Markdown."""
    parts = [_ABOUT.format(scale=scale)]
    for section in sections:
        parts += [markdown.heading(section.title), _table(section)]
        parts += dict.fromkeys(one.regime for one in section.findings if one.regime)
        parts += [section.remark.strip()] if section.remark else []
        parts += [f"![Measured: {section.title}]({section.picture})"] if section.picture else []
        parts += [f"Also measured: {'; '.join(section.others)}."] if section.others else []
    legend = [markdown.heading("How to read it"), markdown.items(_LEGEND)]
    return markdown.page("Results", [*parts, *legend])


def _table(section: Section) -> str:
    return markdown.grid(_HEADS, [_line(finding) for finding in section.findings], len(_HEADS))


def _line(finding: Finding) -> list[str]:
    published, measured = finding.published, finding.measured
    claim, evidence = published.claim, published.evidence
    return [
        f"{claim.text} ({claim.place}{_bound(published)}) {finding.tables}".strip(),
        _of_cells(published, reported(published, published.effects[0])),
        NOTHING if evidence is None else str(evidence),
        NOTHING if measured is None else _measured(measured),
        _verdict(finding),
    ]


def _bound(judgement: Judgement) -> str:
    """Write the bounds of a claim that has any but 0: ``: ≤ 1.1``."""
    return "" if judgement.claim.than is not None else f":{bound_text(judgement)}"


def _of_cells(judgement: Judgement, text: str) -> str:
    cells = sum(len(effect.pairs) for effect in judgement.effects)
    return f"{text}, mean of {cells}" if cells > 1 and text != NOTHING else text


def _measured(judgement: Judgement) -> str:
    effect = judgement.effects[0]
    text = measured_text(judgement, effect)
    if text == NOTHING:
        return NOTHING
    return f"{_of_cells(judgement, text)}; {seeds_text(effect.measured.n)}"


def _verdict(finding: Finding) -> str:
    if finding.measured is not None and finding.measured.verdict != NOT_MEASURED:
        return verdict_text(finding.measured)
    return f"not measured yet{finding.waiting}"
