"""A claim of a paper: which cells of an experiment's table are above which others."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from fedstage.settings.base import Name, Rate, Settings
from fedstage.settings.published import Columns
from fedstage.settings.scores import Cells


class StatedRows(Settings):
    """Rows of a published table that state a claimed effect, as one number or a range."""

    table: str
    """Name of the published table."""
    where: Columns = {}
    """Columns with the values that the rows must match."""


#: An effect stated in a paper's text: both ends of a range, which are equal for a single number.
Stated = Annotated[tuple[float, float], Field(strict=False)]


class Claim(Settings):
    """One ordering that a paper claims, over cells of an experiment.

    Cells are claimed to be `greater` or `less` `than` others. Alternatively, their `ratio` or
    `difference` `to` others, or their own `value`, is claimed to lie within one or two bounds.
    Compared cells agree on all axes that neither side names.
    """

    id: Name
    """Name of the claim."""
    text: str
    """The claim, in one sentence."""
    place: str
    """Where in the paper the claim is made."""
    experiment: Name
    """Experiment whose cells are compared."""
    metric: str | None = None
    """Metric of the cells; by default the metric of the experiment's table."""
    where: Cells = {}
    """Values of axes that both sides have."""
    greater: Cells | None = None
    """Cells that are claimed to be above the cells of `than`."""
    less: Cells | None = None
    """Cells that are claimed to be below the cells of `than`."""
    than: Cells | None = None
    """Cells with which the cells of `greater` or `less` are compared."""
    ratio: Cells | None = None
    """Cells that are divided by the cells of `to`."""
    value: Cells | None = None
    """Cells whose own value is bounded."""
    difference: Cells | None = None
    """Cells from which the cells of `to` are subtracted."""
    to: Cells | None = None
    """Cells with which the cells of `ratio` or `difference` are compared."""
    at_least: float | None = None
    """Lower bound of the ratio, difference or value; by default none."""
    at_most: float | None = None
    """Upper bound of the ratio, difference or value; by default none."""
    stated: StatedRows | Stated | None = None
    """Effect that the paper states, if its tables do not have the number."""
    quantifier: Literal["all", "mean"] = "all"
    """Whether the claim is about every comparison, or about their average."""
    primary: bool = False
    """Whether this is one of the paper's few main claims, which are judged on the mean over their
    cells.
    """
    margin: Rate | None = None
    """Smallest relevant difference, in units of the metric; a difference nearer to 0 counts as
    practically nil.
    """

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


class Gate(Settings):
    """A condition on measured cells that must hold for a scale to decide any claim.

    Every cell of `above` must be above the cells of `below` that agree with it on all axes that
    neither names. Means over seeds are compared, in the metric of the table.
    """

    above: Annotated[Cells, Field(min_length=1)]
    """Cells that must be above the cells of `below`."""
    below: Annotated[Cells, Field(min_length=1)]
    """Cells with which the cells of `above` are compared."""

    def as_claim(self, experiment: str) -> Claim:
        """Return a claim that makes the same comparisons."""
        return Claim(
            id="gate",
            text="The regime decides claims.",
            place="not in a paper",
            experiment=experiment,
            greater=self.above,
            than=self.below,
        )


#: Numbers of seeds, in ascending order.
Looks = list[Annotated[int, Field(ge=2)]]


class ClaimList(Settings):
    """The claims of a file."""

    looks: Looks = []
    """Numbers of seeds at which claims are judged, such as [5, 10, 20]; by default any number."""
    claims: list[Claim]
    """List of claims."""

    def _faults(self) -> Iterator[str]:
        if sorted(set(self.looks)) != self.looks:
            yield f"looks = {self.looks}: must rise"


class Family(Settings):
    """The claims of a file, whose p-values are corrected together for multiple comparisons.

    All claims of the file count, including claims about other experiments.
    """

    claims: list[Name]
    """Names of the claims of the file that are about this experiment."""
    primary: int
    """Number of primary claims in the file."""
    exploratory: int
    """Number of other claims in the file."""
    looks: Looks = []
    """Numbers of seeds at which the claims are judged."""


class ClaimsToJudge(ClaimList):
    """The claims that a stage reads."""

    comparisons: dict[str, int] = {}
    """Number of comparisons of each claim at the paper's scale."""
    families: list[Family] = []
    """Claims grouped by their files; claims without a file are one more family."""
    gate: Gate | None = None
    """Condition without which no claim is decided; by default none."""
    printed: list[Name] = []
    """Claims that are judged on cells whose numbers the paper prints."""


_BOUNDS = {"at_least", "at_most"}
_UNBOUNDED = ({"greater", "than"}, {"less", "than"})
_BOUNDED = ({"ratio", "to"}, {"difference", "to"}, {"value"})
_PARTS = ("greater", "less", "than", "ratio", "difference", "to", "value", *sorted(_BOUNDS))
