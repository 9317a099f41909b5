"""A claim of a paper: which cells of an experiment's table are above which others."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from fedstage.settings.base import Name, Settings
from fedstage.settings.published import Columns
from fedstage.settings.scores import Cells


class StatedRows(Settings):
    """The rows of `table` that match `where` and state a claimed effect: one, or a range."""

    table: str
    where: Columns = {}


#: An effect stated in a paper's text: the ends of a range, equal ones for a single number.
Stated = Annotated[tuple[float, float], Field(strict=False)]


class Claim(Settings):
    """One ordering that a paper claims, over cells of an experiment.

    Cells are claimed to be `greater` or `less` `than` others; or their `ratio` or `difference` `to`
    others, or their own `value`, lies within one or two bounds. Compared cells agree on all axes
    that neither side names; `where` holds for both sides. The claim is about every comparison
    (`all`) or their average (`mean`). `metric` is by default that of the experiment's table.
    `stated` is the paper's effect, unless its tables have the number.
    """

    id: Name
    text: str
    place: str
    experiment: Name
    metric: str | None = None
    where: Cells = {}
    greater: Cells | None = None
    less: Cells | None = None
    than: Cells | None = None
    ratio: Cells | None = None
    value: Cells | None = None
    difference: Cells | None = None
    to: Cells | None = None
    at_least: float | None = None
    at_most: float | None = None
    stated: StatedRows | Stated | None = None
    quantifier: Literal["all", "mean"] = "all"

    def _faults(self) -> Iterator[str]:
        given = {name for name in _PARTS if getattr(self, name) is not None}
        bounded = given & _BOUNDS
        if given - _BOUNDS not in (_BOUNDED if bounded else _UNBOUNDED):
            yield (
                f"claim {self.id!r}: {', '.join(sorted(given)) or 'no comparison'}: give greater "
                "and than, less and than, or ratio and to, difference and to or value with "
                "at_least, at_most or both"
            )
        low, high = self.bounds
        if low > high:
            yield f"claim {self.id!r}: at_least = {low:g}: must not be above at_most = {high:g}"
        if self.ratio is not None and high <= 0:
            yield f"claim {self.id!r}: at_most = {high:g}: of a ratio must be above 0"

    @property
    def bounds(self) -> tuple[float, float]:
        """The claimed lower and upper bound of the effect."""
        if self.greater is not None:
            return 0.0, float("inf")
        if self.less is not None:
            return -float("inf"), 0.0
        low, high = self.at_least, self.at_most
        return -float("inf") if low is None else low, float("inf") if high is None else high


class ClaimList(Settings):
    """The claims of a file."""

    claims: list[Claim]


class ClaimsToJudge(ClaimList):
    """The claims that a stage reads, and how many comparisons each makes at the paper's scale."""

    comparisons: dict[str, int] = {}


_BOUNDS = {"at_least", "at_most"}
_UNBOUNDED = ({"greater", "than"}, {"less", "than"})
_BOUNDED = ({"ratio", "to"}, {"difference", "to"}, {"value"})
_PARTS = ("greater", "less", "than", "ratio", "difference", "to", "value", *sorted(_BOUNDS))
