"""The claims of a file, corrected for one another.

Primary claims are a family corrected by Holm's method: with 95 % probability all of their verdicts
are right. The others are exploratory, and corrected by Benjamini and Hochberg's method: 5 % of
their verdicts are expected to be wrong. A family has all claims of the file, on any experiment.
Claims that are not measured in a report count with a p-value of 1, which makes its verdicts
conservative.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from fedstage.results.claims.effects import decide
from fedstage.results.claims.power import seeds_needed
from fedstage.results.claims.significance import LEVEL, Correction, corrected
from fedstage.results.claims.verdicts import Judgement, decided, is_decided
from fedstage.settings.claims import Family

Replace = Callable[[Judgement], Judgement]


def correct(judgements: Sequence[Judgement], families: Sequence[Family] = ()) -> list[Judgement]:
    """Return judgements whose p-values and verdicts allow for one another.

    Claims of none of the `families` form one more family. Cells of a primary claim are tested only
    if the claim is decided, with Holm's correction among them.
    """
    found = {judgement.claim.id: judgement for judgement in judgements}
    for family in (*families, _others(judgements, families)):
        members = [found[name] for name in family.claims if name in found]
        primary = [one for one in members if one.claim.primary]
        others = [one for one in members if not one.claim.primary]
        adjusted = [
            *map(_opened, _adjusted(primary, family.primary, "holm")),
            *_adjusted(others, family.exploratory, "fdr_bh"),
        ]
        found |= {one.claim.id: one for one in adjusted}
    return [found[judgement.claim.id] for judgement in judgements]


def _others(judgements: Sequence[Judgement], families: Sequence[Family]) -> Family:
    """Return the family of the claims that have none; only measured claims count in it."""
    named = {name for family in families for name in family.claims}
    rest = [one for one in judgements if one.claim.id not in named]
    primary = [one.claim.primary for one in rest if one.made]
    names = [one.claim.id for one in rest]
    return Family(claims=names, primary=sum(primary), exploratory=len(primary) - sum(primary))


def _adjusted(members: Sequence[Judgement], size: int, by: Correction) -> list[Judgement]:
    """Return the members of a family of some size with corrected p-values."""
    measured = [one for one in members if one.made]
    p_values = [one.p.smallest for one in measured]
    after = corrected([*p_values, *[1.0] * (size - len(measured))], by)
    factors = {
        one.claim.id: q / p if p else float(size)
        for one, p, q in zip(measured, p_values, after, strict=False)
    }
    level = LEVEL / max(size, 1)  # that a single effect must reach, by either correction
    return [_scaled(one, factors[one.claim.id], level) if one.made else one for one in members]


def _scaled(judgement: Judgement, factor: float, level: float) -> Judgement:
    """Return a judgement with all p-values times a factor, and the seeds that would decide it."""
    changed = decided(replace(judgement, p=judgement.p.times(factor), level=level))
    return changed if is_decided(changed) else replace(changed, needed=_needed(changed))


def _needed(judgement: Judgement) -> int | None:
    """Return how many seeds all comparisons of a claim need, or None if no number is known.

    Also None if there are as many seeds at hand: the effect is then not as large as expected.
    """
    every = [
        seeds_needed(judgement.claim, effect, judgement.level, judgement.looks)
        for effect in judgement.made
    ]
    known = [number for number in every if number is not None]
    most = max(known, default=0)
    return most if len(known) == len(every) and most > judgement.seeds else None


def _opened(judgement: Judgement) -> Judgement:
    """Return a primary claim with its cells tested, if it is decided."""
    tested = [cell for cell in judgement.cells if cell.measured.n]
    if not is_decided(judgement) or not tested:
        return judgement
    p_values = [cell.p.smallest for cell in tested]
    pairs = zip(tested, p_values, corrected(p_values, "holm"), strict=True)
    verdicts = {id(cell): decide(cell.p.times(q / p if p else 1.0)) for cell, p, q in pairs}
    cells = [
        replace(cell, verdict=verdicts.get(id(cell), cell.verdict)) for cell in judgement.cells
    ]
    return replace(judgement, cells=cells)
