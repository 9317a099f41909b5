"""Judgements on claims as exact numbers: one row per comparison."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Any

import pyarrow as pa

from fedstage.results.claims.effects import Effect, stated_range
from fedstage.results.claims.evidence import Evidence
from fedstage.results.claims.verdicts import Judgement
from fedstage.settings.claims import Claim


@dataclass(frozen=True)
class Line:
    """A comparison of a claim: its kind, its effect, and its place in the paper's evidence."""

    judgement: Judgement
    kind: str
    effect: Effect
    place: int | None

    @property
    def claim(self) -> Claim:
        """The claim."""
        return self.judgement.claim

    @property
    def stated(self) -> tuple[float | None, float | None]:
        """The ends of the range that the paper's text states, if any."""
        return stated_range(self.claim) or (None, None)

    @property
    def with_images(self) -> tuple[float | None, float | None]:
        """The ends of the interval over seeds and test images, if there is one."""
        interval = self.effect.over_images
        return (interval.low, interval.high) if interval else (None, None)

    @property
    def published_p(self) -> tuple[float | None, float | None]:
        """The paper's own p-value, and the corrected one."""
        evidence = self.judgement.evidence
        if evidence is None or self.place is None:
            return None, None
        return evidence.p_values[self.place], evidence.adjusted[self.place]


#: The columns: name, type, value of a line, and whether there may be none.
_TEXT, _NUMBER, _COUNT, _YES = pa.string(), pa.float64(), pa.int64(), pa.bool_()
_COLUMNS: list[tuple[str, pa.DataType, Callable[[Line], Any], bool]] = [
    ("claim", _TEXT, lambda line: line.claim.id, False),
    ("place", _TEXT, lambda line: line.claim.place, False),  # in the paper
    ("quantifier", _TEXT, lambda line: line.claim.quantifier, False),  # "all" or "mean"
    ("metric", _TEXT, lambda line: line.claim.metric, False),
    ("comparison", _TEXT, lambda line: line.effect.label, False),  # which cells
    ("effect", _TEXT, lambda line: _kind(line.claim), False),
    # The bounds of the claimed effect, the effect in the paper's means, and in its text, if it is
    # not in its tables.
    ("claimed_low", _NUMBER, lambda line: line.claim.bounds[0], True),
    ("claimed_high", _NUMBER, lambda line: line.claim.bounds[1], True),
    ("published", _NUMBER, lambda line: line.effect.published, True),
    ("stated_low", _NUMBER, lambda line: line.stated[0], True),
    ("stated_high", _NUMBER, lambda line: line.stated[1], True),
    ("published_holds", _YES, lambda line: line.effect.published_holds, True),
    # The effect over seeds, and its 95 % confidence interval.
    ("seeds", _COUNT, lambda line: line.effect.measured.n, False),
    ("mean", _NUMBER, lambda line: line.effect.measured.mean, True),
    ("low", _NUMBER, lambda line: line.effect.measured.low, True),
    ("high", _NUMBER, lambda line: line.effect.measured.high, True),
    ("verdict", _TEXT, lambda line: line.effect.verdict, False),
    # Of the whole claim, the same in each of its rows: the p-value is of the verdict, corrected
    # (Holm), and comparisons that are not made have no measurements.
    ("claim_published_holds", _YES, lambda line: line.judgement.published_holds, True),
    ("claim_verdict", _TEXT, lambda line: line.judgement.verdict, False),
    ("claim_p", _NUMBER, lambda line: line.judgement.p_verdict, False),
    ("claim_not_made", _COUNT, lambda line: line.judgement.not_made, False),
    ("kind", _TEXT, lambda line: line.kind, False),  # "primary", its "cell", or "exploratory"
    ("margin", _NUMBER, lambda line: line.claim.margin, True),  # nearer to 0 is practically nil
    # For this comparison alone, like the verdict: for each verdict but undecided.
    ("p_holds", _NUMBER, lambda line: line.effect.p.holds, False),
    ("p_contradicted", _NUMBER, lambda line: line.effect.p.contradicted, False),
    ("p_nil", _NUMBER, lambda line: line.effect.p.nil, False),
    # Upper bound of the standard error by the draw of test images, and 95 % interval with it.
    ("image_error", _NUMBER, lambda line: line.effect.image_error, True),
    ("low_with_images", _NUMBER, lambda line: line.with_images[0], True),
    ("high_with_images", _NUMBER, lambda line: line.with_images[1], True),
    # P-value of Welch's test of printed means, also corrected for the claim's others (Holm), and
    # what these tests find.
    ("published_p", _NUMBER, lambda line: line.published_p[0], True),
    ("published_p_holm", _NUMBER, lambda line: line.published_p[1], True),
    ("claim_evidence", _TEXT, lambda line: _text(line.judgement.evidence), True),
    # Seeds that would decide an undecided claim, and comparisons that the paper lacks.
    ("claim_seeds_needed", _COUNT, lambda line: line.judgement.needed, True),
    ("claim_left_out", _COUNT, lambda line: line.judgement.left_out, False),
    # Seeds whose effect is at most, or at least, its value: runs of theirs ended below the goal.
    ("seeds_at_most", _COUNT, lambda line: line.effect.at_most, False),
    ("seeds_at_least", _COUNT, lambda line: line.effect.at_least, False),
]
SCHEMA = pa.schema([pa.field(name, kind, nullable=none) for name, kind, _, none in _COLUMNS])


def claim_rows(judgements: Iterable[Judgement], metric: str) -> list[dict[str, Any]]:
    """Return the rows of the table; `metric` is the metric of claims without one."""
    lines = [line for judgement in judgements for line in lines_of(judgement)]
    rows = [{name: _known(value(line)) for name, _, value, _ in _COLUMNS} for line in lines]
    return [row | {"metric": row["metric"] or metric} for row in rows]


def lines_of(judgement: Judgement) -> Iterator[Line]:
    """Yield the comparisons of a claim: first the ones behind its verdict, then its cells."""
    claim = judgement.claim
    single = not judgement.cells and (claim.primary or claim.quantifier == "all")
    for i, effect in enumerate(judgement.effects):
        kind = "primary" if claim.primary else "exploratory"
        yield Line(judgement, kind, effect, i if single else None)
    for i, cell in enumerate(judgement.cells):
        yield Line(judgement, "cell", cell, i)


def _kind(claim: Claim) -> str:
    if claim.value is not None:
        return "value"
    return "difference" if claim.ratio is None else "ratio"


def _known(value: Any) -> Any:
    """Return a value, None for a number that is not finite."""
    return None if isinstance(value, float) and not isfinite(value) else value


def _text(evidence: Evidence | None) -> str | None:
    return None if evidence is None else str(evidence)
