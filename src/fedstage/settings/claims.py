"""A claim of a paper: which cells of an experiment's table are above which others."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from fedstage.settings.base import Name, Rate, Settings
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
    primary: bool = False
    """Of the few claims that the paper stands for, judged on the mean over their cells."""
    margin: Rate | None = None
    """A difference that is nearer to 0 than this, in units of the metric, is practically nil."""

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
        if self.margin is not None and self.than is None:
            yield (
                f"claim {self.id!r}: margin = {self.margin:g}: only with greater or less; the "
                "bounds of other claims are their margins"
            )
        if self.primary and self.than is not None and self.margin is None:
            yield f"claim {self.id!r}: margin: missing, a primary claim must have one"

    @property
    def bounds(self) -> tuple[float, float]:
        """The claimed lower and upper bound of the effect."""
        if self.greater is not None:
            return 0.0, float("inf")
        if self.less is not None:
            return -float("inf"), 0.0
        low, high = self.at_least, self.at_most
        return -float("inf") if low is None else low, float("inf") if high is None else high


#: Numbers of seeds, rising.
Looks = list[Annotated[int, Field(ge=2)]]


class ClaimList(Settings):
    """The claims of a file."""

    looks: Looks = []
    """Numbers of seeds at which claims are judged, such as [5, 10, 20]; by default any number."""
    claims: list[Claim]
    """The claims."""

    def _faults(self) -> Iterator[str]:
        if sorted(set(self.looks)) != self.looks:
            yield f"looks = {self.looks}: must rise"


class Family(Settings):
    """The claims of a file, whose p-values are corrected for one another.

    All claims of the file count, also those that are about other experiments.
    """

    claims: list[Name]
    """Their ids, as far as they are about this experiment."""
    primary: int
    """How many primary claims the file has."""
    exploratory: int
    """How many others it has."""
    looks: Looks = []
    """Numbers of seeds at which they are judged."""


class ClaimsToJudge(ClaimList):
    """The claims that a stage reads."""

    comparisons: dict[str, int] = {}
    """How many comparisons each claim makes at the paper's scale."""
    families: list[Family] = []
    """The claims by the files that they are in; claims without a file are one more family."""
    printed: list[Name] = []
    """Claims that are judged on cells whose number the paper prints."""


_BOUNDS = {"at_least", "at_most"}
_UNBOUNDED = ({"greater", "than"}, {"less", "than"})
_BOUNDED = ({"ratio", "to"}, {"difference", "to"}, {"value"})
_PARTS = ("greater", "less", "than", "ratio", "difference", "to", "value", *sorted(_BOUNDS))
