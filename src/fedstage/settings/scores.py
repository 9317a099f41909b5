"""Scores: axes, cells, metrics and roles, their published counterparts, and claims about them."""

from collections.abc import Iterator
from typing import Annotated, Literal, get_args

from pydantic import Field

from fedstage.settings.base import Name, Rate, Settings

#: A value of an axis of an experiment's grid.
Axis = str | int | float | bool | None

#: Cells of a table, by values of axes, such as ``{method: [fedavg, feddf], partition.alpha: 0.1}``.
Cells = dict[str, Axis | Annotated[list[Axis], Field(min_length=1)]]

#: A score to be reached, in percent.
Goal = Annotated[float, Field(gt=0, le=100)]
#: What runs are to reach: the final accuracy of some cells, one accuracy for all, or one for each
#: value of one axis, ``{data: {cifar10: 70, cifar100: 30}}``.
Reach = Cells | Goal | dict[str, dict[str | int | float, Goal]]

#: Median measured seconds of a round: of one participant's training, or of all jobs of a stage.
Seconds = Literal[
    "participant_s",
    "training_s",
    "aggregation_s",
    "logits_s",
    "distillation_s",
    "added_s",
    "round_s",
]

#: Bytes that one client sends and receives in a run: in total, until the round that is best on
#: validation samples, and until the run has reached its goal. Further, the mean upload of a round
#: and the download of the ensemble. The first three are also given as multiples of one model up and
#: one down. Predictions need `memory_bytes`. `params` counts the 32-bit numbers that all clients
#: send and receive.
Communicated = Literal[
    "bytes",
    "times_one_shot",
    "bytes_to_best",
    "times_one_shot_to_best",
    "bytes_to_reach",
    "times_one_shot_to_reach",
    "bytes_up_a_round",
    "ensemble_bytes",
    "memory_bytes",
    "params",
    "params_to_reach",
]
COMMUNICATED: frozenset[str] = frozenset(get_args(Communicated))

#: Measures of forgetting in a run: its final accuracy on test samples, and means over its rounds.
Retained = Literal[
    "final_accuracy",
    "forget_score",
    "current",
    "previous",
    "lost",
    "gained",
    "retained",
    "distance",
    "fluctuation",
]
#: Claims may also be about the overlap of what a run and the other methods have learnt.
RETAINED: frozenset[str] = frozenset({*get_args(Retained), "overlap"})

#: Columns of the metrics in percent; higher is better.
Score = Literal["top1_accuracy", "balanced_accuracy", "auc"]

#: The metric of a table and its claims: a score, or a column of the table of seconds.
Metric = Literal[Score, Seconds]
SECONDS: frozenset[str] = frozenset(get_args(Seconds))

#: The evaluated samples: the test samples, the test samples as each client would prepare them, or
#: the training samples set aside for validation.
Role = Literal["test", "test_own", "validation"]


#: Columns of the published table, or keys of its `setting`, with the values to match.
Columns = dict[str, Axis]


class Published(Settings):
    """The published counterpart of a table."""

    paper: str
    """Name of the paper's folder."""
    table: str
    """Name of the published table."""
    metric: str = "top1_accuracy"
    """Metric of the published numbers; by default the metric of the table."""
    where: Columns = {}
    """Columns with the values that all cells match."""
    axes: dict[str, str] = {}
    """Published column that contains the values of an axis; by default `method`, `model`, `dataset`
    and `partition_alpha` for the axes `method`, `model`, `data` and `partition.alpha`.
    """
    match: dict[str, dict[Axis, Columns | None]] = {}
    """Published columns, with the values to match, for each value of an axis; null if the paper has
    no such row.
    """


class Number(Settings):
    """A number of a paper: its mean, what follows its ± sign, and its seeds."""

    value: float
    std: float | None = None
    seeds: int | None = None


class StatedRows(Settings):
    """Rows of a published table that state a claimed effect, as one number or a range."""

    table: str
    """Name of the published table."""
    where: Columns = {}
    """Columns with the values that the rows must match."""


#: An effect stated in a paper's text: both ends of a range, which are equal for a single number.
Stated = Annotated[tuple[float, float], Field(strict=False)]


class Regime(Settings):
    """The regime that a paper speaks of: what federated runs must show for a claim to be judged."""

    training_loss: Rate | None = None
    """Highest training loss of participants in their last epoch of the last round."""
    rise: Rate | None = None
    """Most that the metric rises over the last third of the rounds, in its units."""


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
    """Whether this is one of the paper's few main claims, which are corrected for one another."""
    regime: Regime | None = None
    """Regime that the claim is about; by default the file's, for claims without `metric`."""
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


class ClaimList(Settings):
    """The claims of a file."""

    regime: Regime | None = None
    """Regime that the claims without `metric` are about, but those on seconds."""
    claims: list[Claim]
    """List of claims."""


class Family(Settings):
    """Primary claims of a file, whose p-values are corrected together."""

    claims: list[Name]
    """Names of the primary claims of the file that are about this experiment."""
    primary: int
    """Number of all primary claims of the file."""


class ClaimsToJudge(ClaimList):
    """The claims that a stage reads."""

    comparisons: dict[str, int] = {}
    """Number of comparisons of each claim at the paper's scale."""
    families: list[Family] = []
    """Primary claims by their files; others are one more family."""


_BOUNDS = {"at_least", "at_most"}
_UNBOUNDED = ({"greater", "than"}, {"less", "than"})
_BOUNDED = ({"ratio", "to"}, {"difference", "to"}, {"value"})
_PARTS = ("greater", "less", "than", "ratio", "difference", "to", "value", *sorted(_BOUNDS))
