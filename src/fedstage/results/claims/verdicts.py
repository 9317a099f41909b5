"""Whether a claim holds: in the published means, and in measurements with several seeds."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from fedstage.results.claims.comparisons import Cell, Show, comparisons
from fedstage.results.claims.effects import (
    HOLDS,
    NIL,
    NOT_MEASURED,
    NOT_TESTED,
    UNDECIDED,
    Effect,
    by_seed,
    decide,
    effect_of,
)
from fedstage.results.claims.evidence import Evidence, evidence_of
from fedstage.results.claims.significance import LEVEL, PValues
from fedstage.settings.claims import Claim

#: All comparisons that were made are as claimed, but some were not made.
HOLDS_SO_FAR = "holds where measured"


@dataclass(frozen=True)
class Judgement:
    """A claim with its effects, and the verdict on all of them together.

    The p-values are for all comparisons being as claimed, for one not being so, and for all being
    practically nil. A primary claim has one effect, the mean over its cells; `cells` are tested
    after it.
    """

    claim: Claim
    effects: list[Effect]
    published_holds: bool | None
    not_made: int  # comparisons at the paper's scale, or at this one, without measurements
    verdict: str
    p: PValues
    cells: list[Effect] = field(default_factory=list)
    left_out: int = 0  # comparisons with a cell that the paper prints no number for
    evidence: Evidence | None = None
    looks: Sequence[int] = ()
    level: float = LEVEL  # at which a test of its own would decide it
    needed: int | None = None  # seeds that would decide it

    @property
    def made(self) -> list[Effect]:
        """The effects that have measurements."""
        return [effect for effect in self.effects if effect.measured.n]

    @property
    def p_verdict(self) -> float:
        """The p-value of the verdict."""
        return self.p.nil if self.verdict == NIL else self.p.smallest

    @property
    def seeds(self) -> int:
        """The number of seeds of the comparison that has the fewest."""
        return min((effect.measured.n for effect in self.made), default=0)


def judge(
    claim: Claim,
    cells: Sequence[Cell],
    show: Show = dict,
    claimed: int | None = None,
    *,
    looks: Sequence[int] = (),
    printed: bool = False,
) -> Judgement:
    """Judge a claim on an experiment's cells.

    A claim about all comparisons holds if it holds in each that is made. It is contradicted if one
    comparison contradicts it, with Bonferroni's correction for their number, and practically nil if
    all are. Otherwise it is undecided or not measured.

    Parameters
    ----------
    show : callable
        Turns a point into its labels.
    claimed : int, optional
        The number of comparisons that the claim is about, if these cells make fewer.
    looks : sequence of int
        Numbers of seeds at which the claim is judged; by default any.
    printed : bool
        Whether comparisons with a cell that has no published number are left out.
    """
    every = comparisons(claim, cells)
    pairs = [pair for pair in every if not printed or all(has_number(cell) for cell in pair)]
    averaged = claim.primary or claim.quantifier == "mean"
    measured = [pair for pair in pairs if by_seed(claim, [pair])]
    groups = [measured or pairs] if averaged and pairs else [[pair] for pair in pairs]
    effects = [effect_of(claim, group, pairs, show, looks) for group in groups]
    behind = pairs if claim.primary and len(pairs) > 1 else []  # one cell is its own mean
    tested = [effect_of(claim, [pair], pairs, show, looks) for pair in behind]
    known = [effect.published_holds for effect in effects if effect.published_holds is not None]
    made = [effect for effect in effects if effect.measured.n]
    count = sum(len(effect.pairs) for effect in made)
    judgement = Judgement(
        claim,
        effects,
        all(known) if known else None,
        max(claimed or 0, len(pairs)) - count,
        NOT_MEASURED,
        PValues(
            max((effect.p.holds for effect in made), default=1.0),
            min((1.0, *(len(made) * effect.p.contradicted for effect in made))),
            max((effect.p.nil for effect in made), default=1.0),
        ),
        [_closed(effect) for effect in tested],
        len(every) - len(pairs),
        evidence_of(claim, pairs),
        looks,
    )
    return decided(judgement)


def has_number(cell: Cell) -> bool:
    """Whether the paper prints a cell's number."""
    return cell.published is not None


def decided(judgement: Judgement) -> Judgement:
    """Return a judgement with the verdict that its p-values allow."""
    if not judgement.made:
        return judgement
    verdict = decide(judgement.p)
    so_far = verdict == HOLDS and judgement.not_made
    return replace(judgement, verdict=HOLDS_SO_FAR if so_far else verdict)


def is_decided(judgement: Judgement) -> bool:
    """Whether the measurements decide a claim."""
    return judgement.verdict not in (UNDECIDED, NOT_MEASURED)


def _closed(effect: Effect) -> Effect:
    """Return the effect of a cell that is not tested yet."""
    return replace(effect, verdict=NOT_TESTED) if effect.measured.n else effect
