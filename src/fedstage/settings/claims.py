"""A claim of a paper: which cells of an experiment's table are above which others."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from fedstage.settings.base import Name, Settings
from fedstage.settings.published import Columns
from fedstage.settings.scores import Cells


class StatedRows(Settings):
    """Rows of a published table that state a claimed effect: one, or a range."""

    table: str
    """Name of the table."""
    where: Columns = {}
    """Columns and values that the rows match."""


#: An effect stated in a paper's text: the ends of a range, equal ones for a single number.
Stated = Annotated[tuple[float, float], Field(strict=False)]


class Claim(Settings):
    """One ordering that a paper claims, over cells of an experiment.

    Cells are claimed to be `greater` or `less` `than` others; or their `ratio` or `difference` `to`
    others, or their own `value`, lies within one or two bounds. Compared cells agree on all axes
    that neither side names.
    """

    id: Name
    """Name of the claim."""
    text: str
    """The claim in a sentence."""
    place: str
    """Where in the paper it is."""
    experiment: Name
    """The experiment whose cells are compared."""
    metric: str | None = None
    """By default the metric of the experiment's table."""
    where: Cells = {}
    """Values of axes that hold for both sides."""
    greater: Cells | None = None
    """Cells that are above the cells of `than`."""
    less: Cells | None = None
    """Cells that are below the cells of `than`."""
    than: Cells | None = None
    """What `greater` or `less` cells are compared with."""
    ratio: Cells | None = None
    """Cells that are divided by the cells of `to`."""
    value: Cells | None = None
    """Cells whose own value is bounded."""
    difference: Cells | None = None
    """Cells from which the cells of `to` are subtracted."""
    to: Cells | None = None
    """What `ratio` or `difference` cells are compared with."""
    at_least: float | None = None
    """Lower bound."""
    at_most: float | None = None
    """Upper bound."""
    stated: StatedRows | Stated | None = None
    """The paper's effect, unless its tables have the number."""
    quantifier: Literal["all", "mean"] = "all"
    """The claim is about every comparison, or their average."""

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
    """The claims."""


class ClaimsToJudge(ClaimList):
    """The claims that a stage reads."""

    comparisons: dict[str, int] = {}
    """How many comparisons each claim makes at the paper's scale."""


_BOUNDS = {"at_least", "at_most"}
_UNBOUNDED = ({"greater", "than"}, {"less", "than"})
_BOUNDED = ({"ratio", "to"}, {"difference", "to"}, {"value"})
_PARTS = ("greater", "less", "than", "ratio", "difference", "to", "value", *sorted(_BOUNDS))
