"""A claim: which cells of an experiment's table are said to be above which others."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from fedstage.settings.base import Name, Settings
from fedstage.settings.published import Columns
from fedstage.settings.scores import Cells


class StatedRows(Settings):
    """The rows of a paper's numbers that state what a claim is about: one, or `bound` low and high.

    They are those of `table` that have all columns of `where`.
    """

    table: str
    where: Columns = {}


#: What a paper says of an effect in its text: the ends of a range, equal ones for a single number.
Stated = Annotated[tuple[float, float], Field(strict=False)]


class Claim(Settings):
    """One ordering that a paper claims, over cells of an experiment.

    Either `greater` or `less` cells are compared with those of `than`, or the `ratio` of cells `to`
    others, or their `difference` to them, with a bound or two. Of these cells, those are compared
    that agree on all axes which neither side names; `where` holds for both sides. A `value` is that
    of each of its cells by itself, with a bound or two. `all`: the claim
    is about every comparison; `mean`: about their average. `metric` is that of the experiment's
    table unless it names another. `stated` is what the paper says of it where its tables have no
    such number.
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

    @model_validator(mode="after")
    def _one_comparison(self) -> "Claim":
        given = {name for name in _PARTS if getattr(self, name) is not None}
        bounded = given & _BOUNDS
        if given - _BOUNDS not in (_BOUNDED if bounded else _UNBOUNDED):
            raise ValueError(
                f"claim {self.id!r}: {', '.join(sorted(given)) or 'no comparison'}: give greater "
                "and than, less and than, or ratio and to, difference and to or value with "
                "at_least, at_most or both"
            )
        return self

    @model_validator(mode="after")
    def _bounds_in_order(self) -> "Claim":
        low, high = self.bounds
        if low > high:
            raise ValueError(
                f"claim {self.id!r}: at_least = {low:g}: must not be above at_most = {high:g}"
            )
        if self.ratio is not None and high <= 0:
            raise ValueError(f"claim {self.id!r}: at_most = {high:g}: of a ratio must be above 0")
        return self

    @property
    def bounds(self) -> tuple[float, float]:
        """Between which numbers the effect is claimed to be."""
        if self.greater is not None:
            return 0.0, float("inf")
        if self.less is not None:
            return -float("inf"), 0.0
        low, high = self.at_least, self.at_most
        return -float("inf") if low is None else low, float("inf") if high is None else high


class ClaimList(Settings):
    """Claims, as a stage reads them."""

    claims: list[Claim]


class ClaimFile(ClaimList):
    """A file of `workflow/claims`: the claims of one paper."""

    paper: str


_BOUNDS = {"at_least", "at_most"}
_UNBOUNDED = ({"greater", "than"}, {"less", "than"})
_BOUNDED = ({"ratio", "to"}, {"difference", "to"}, {"value"})
_PARTS = ("greater", "less", "than", "ratio", "difference", "to", "value", *sorted(_BOUNDS))
