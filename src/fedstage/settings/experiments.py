"""Experiment files: base settings, a grid, scales, and the results that are made from the runs.

One file because it reads from top to bottom as an experiment file does.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from fedstage.settings.base import Line, Name, NonNegative, Rate, Settings
from fedstage.settings.merging import Raw
from fedstage.settings.scores import SECONDS, Cells, Metric, Published, Reach

#: What bands and bars show if there are several seeds.
Bands = Literal["interval", "deviation", "none"]
#: Names of colours that readers with any colour vision can tell apart.
Colour = Literal[
    "blue",
    "vermilion",
    "green",
    "pink",
    "black",
    "orange",
    "sky",
    "wine",
    "indigo",
    "olive",
    "brown",
    "grey",
]
Marker = Literal[
    "circle",
    "square",
    "triangle_up",
    "diamond",
    "triangle_down",
    "plus",
    "triangle_left",
    "triangle_right",
]


class Style(Settings):
    """How results show a method; omitted settings follow from its name."""

    label: Line | None = None
    """Name of the method in tables and figures."""
    colour: Colour | None = None
    """Colour of the method in figures."""
    marker: Marker | None = None
    """Marker of the method's points in figures."""


class Figures(Settings):
    """The figures of an experiment."""

    bands: Bands | None = None
    """What bands and bars show from three seeds on: the 95 % confidence `interval` of the mean (the
    default for five seeds or more), one standard `deviation` (the default for fewer), or nothing.
    """


def _published_of(raw: Any, metric: Mapping[str, Any]) -> Any:
    """Return the settings with a metric for `published`, unless it names one."""
    if not (isinstance(raw, Mapping) and isinstance(raw.get("published"), Mapping)):
        return raw
    return {**raw, "published": {**metric, **raw["published"]}}


#: Columns of a table that are shown where they say something, or if they are asked for.
Also = Literal[
    "own_test",
    "own_classes",
    "privacy",
    "maximum",
    "client_std",
    "ece",
    "disagreement",
    "ensemble_gain",
    "agreement",
    "bytes",
    "loss",
    "dropped",
    "round",
    "seeds",
]


class Table(Settings):
    """The table of an experiment."""

    rows: list[str] = ["method"]
    """Axes of the grid that form the rows."""
    columns: list[str] = []
    """Axes of the grid that form the columns."""
    metric: Metric = "top1_accuracy"
    """Metric of the cells. Published numbers and claims are about it unless they name another."""
    published: Published | None = None
    """A paper's numbers, with which the cells are compared; by default none."""
    also: list[Also] = []
    """Further columns; `maximum` is the highest value of all rounds, which some released code
    reports.
    """
    over: str | None = None
    """Axis over whose values a further figure shows the metric; by default there is no such figure.
    """
    baseline: str | None = None
    """Method from which a further figure shows differences; by default there is no such figure."""
    notes: list[str] = []
    """Further lines of the table's legend, in Markdown."""

    @model_validator(mode="before")
    @classmethod
    def _published_of_the_same(cls, raw: Any) -> Any:
        """Compare published numbers in the table's metric by default."""
        named = isinstance(raw, Mapping) and "metric" in raw
        return _published_of(raw, {"metric": raw["metric"]} if named else {})


#: Results that an experiment can make; the results in `MEASURED` need trained runs.
Result = Literal[
    "table",
    "figures",
    "communication",
    "costs",
    "properties",
    "simulation",
    "round_times",
    "retention",
    "clients",
    "report",
]
MEASURED: frozenset[Result] = frozenset(
    {"table", "figures", "communication", "costs", "round_times", "retention", "clients", "report"}
)
#: Results that can be made from runs of any kind; the other results need rounds.
OF_ANY_RUN: frozenset[Result] = frozenset({"table", "figures", "communication", "costs", "report"})


#: What a paper may report about communication: the memory that predictions need, or the number of
#: their parameters; the number of parameters that all participants send and receive until an
#: accuracy is reached; and what a client sends and receives, relative to FedAvg.
MEMORY, SIZE = "memory_mib", "params"
PARAMETERS, RATIO = "params_to_reach", "comm_cost_ratio"


def _a_goal(raw: Any) -> Any:
    """Reject an invalid goal in one line, because a union would give one line per kind."""
    if raw is None or _is_accuracy(raw):
        return raw
    parts = list(raw.values()) if isinstance(raw, dict) else []
    if len(parts) == 1 and isinstance(parts[0], dict):
        if parts[0] and all(map(_is_accuracy, parts[0].values())):
            return raw
    elif parts and all(map(_are_values, parts)):
        return raw
    raise PydanticCustomError(
        "goal",
        "must be cells, {method: fens}, an accuracy above 0 and up to 100, or one for each value "
        "of one axis, {data: {cifar10: 70, cifar100: 30}}",
    )


def _is_accuracy(raw: Any) -> bool:
    return isinstance(raw, int | float) and not isinstance(raw, bool) and 0 < raw <= 100


def _are_values(raw: Any) -> bool:
    values = raw if isinstance(raw, list) else [raw]
    return bool(values) and all(isinstance(value, str | int | float | None) for value in values)


class Communication(Settings):
    """What an experiment's communication is compared with."""

    published: Published | None = None
    """A paper's numbers: the memory that predictions need (`memory_mib`) or their parameters of 32
    bits (`params`), the parameters sent until a fixed goal is reached (`params_to_reach`), or what
    is sent relative to FedAvg (`comm_cost_ratio`, for the result `properties`).
    """
    reach: Annotated[Reach | None, BeforeValidator(_a_goal)] = None
    """Accuracy that runs are to reach, in percent: a fixed one, or the final accuracy of the named
    cells that share the seed and all other axes of a run.
    """

    @model_validator(mode="before")
    @classmethod
    def _published_of_memory(cls, raw: Any) -> Any:
        """Compare published numbers of memory by default."""
        return _published_of(raw, {"metric": MEMORY})

    def _faults(self) -> Iterator[str]:
        metric = MEMORY if self.published is None else self.published.metric
        if metric not in (known := (MEMORY, SIZE, PARAMETERS, RATIO)):
            yield f"published.metric = {metric!r}: must be one of {', '.join(known)}"
        if metric == PARAMETERS and not is_fixed(self.reach):
            yield (
                f"published.metric = {metric!r}: needs a fixed accuracy in reach, such as "
                "reach = 70"
            )


def is_fixed(reach: Reach | None) -> bool:
    """Whether a goal is one or several fixed accuracies, rather than what other cells reach."""
    if isinstance(reach, dict):
        return any(isinstance(part, dict) for part in reach.values())
    return reach is not None


class Simulation(Settings):
    """Seconds of the jobs of a round, for a schedule on the clients and a server.

    Each client is one machine, and the server is one.
    """

    local_training: Rate = 1.0
    """Seconds of a participant's training."""
    aggregation: NonNegative = 0.0
    """Seconds of an aggregation."""
    logits: NonNegative = 0.0
    """Seconds of computing the logits of one group's members."""
    distillation: NonNegative = 1.0
    """Seconds of a distillation."""
    feature_training: NonNegative = 1.0
    """Seconds of training the server's model on features."""
    one_client_at_a_time: bool = False
    """Whether clients are available one after the other only."""


#: The values of an axis of the grid: a list, or a mapping from names shown in tables to values.
Values = list[Any] | dict[str, Any]


def _some_values(values: Any) -> Any:
    if isinstance(values, list | dict) and values:
        return values
    allowed = "must be a list, or a mapping of names to values, with at least 1 item"
    raise PydanticCustomError("axis_values", allowed)


AxisValues = Annotated[Values, BeforeValidator(_some_values)]


class CellSettings(Settings):
    """Settings of all cells of the grid that have the given values of axes."""

    at: Annotated[Cells, Field(min_length=1)]
    """Values of axes, all of which the cells have."""
    settings: Raw
    """Settings of these cells."""


class Scale(Settings):
    """The changes that a scale makes to the base, to methods, and to axes of the grid."""

    base: Raw = {}
    """Changes to the base."""
    methods: dict[str, Raw] = {}
    """Changes to methods."""
    grid: dict[str, AxisValues] = {}
    """Axes of the grid that the scale replaces."""
    cells: list[CellSettings] = []
    """Settings that depend on several axes, such as a learning rate tuned by method and partition.
    """


def _some_scale(raw: Any) -> Any:
    """Return a scale that changes nothing where a file gives none."""
    return {} if raw is None else raw


GivenScale = Annotated[Scale, BeforeValidator(_some_scale, json_schema_input_type=Scale | None)]


class Experiment(Settings):
    """An experiment file."""

    title: Line
    """Title of the experiment's results."""
    like: str | None = None
    """Experiment from whose base, methods and scales (of the same names) this one starts; by
    default none.
    """
    base: Raw = {}
    """Settings that all runs share."""
    grid: dict[str, AxisValues] = {}
    """Axes of the grid: the values of a setting, by its path."""
    methods: dict[str, Raw] = {}
    """Methods that extend or change the library of methods."""
    implies: dict[str, dict[str | int | float, Raw]] = {}
    """Settings that a value of an axis brings with it: axis -> value -> settings."""
    table: Table = Table()
    """The table of results."""
    figures: Figures = Figures()
    """The figures of results."""
    results: Annotated[list[Result], Field(min_length=1)] = ["table", "figures"]
    """Results that are made from the runs; `properties` and `simulation` follow from the settings,
    without training.
    """
    communication: Communication = Communication()
    """What communication is compared with."""
    simulation: Simulation = Simulation()
    """Seconds of jobs for a schedule."""
    scales: Annotated[dict[Name, GivenScale], Field(min_length=1)] = {"default": Scale()}
    """Sizes of the experiment, such as one for a laptop and the paper's own."""

    def _faults(self) -> Iterator[str]:
        if self.table.metric in SECONDS and (
            "round_times" not in self.results or OF_ANY_RUN & set(self.results)
        ):
            yield (
                f"table.metric = {self.table.metric!r}: needs results = [round_times], and neither "
                "table nor figures, nor communication or report, which are of accuracies"
            )
