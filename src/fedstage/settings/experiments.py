"""Experiment files: a base of settings, a grid of them, scales, and what is made of the runs."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from fedstage.experiments.grid import Values
from fedstage.settings.base import Name, Settings
from fedstage.settings.merging import Raw
from fedstage.settings.published import Published
from fedstage.settings.scores import SECONDS, Cells, Metric
from fedstage.settings.simulation import Simulation


class Table(Settings):
    """Which axes of the grid are the rows and the columns of the result table, and of what it is.

    `metric` is what published numbers and claims are about, unless a claim names another.
    `published` says where the numbers of a paper stand that its cells are compared with. `also` has
    further columns: `maximum` is what some released code reports, the highest of all rounds. `over`
    is the axis over whose values a further figure shows the metric.
    """

    rows: list[str] = ["method"]
    columns: list[str] = []
    metric: Metric = "top1_accuracy"
    published: Published | None = None
    also: list[Literal["maximum"]] = []
    over: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _published_of_the_same(cls, raw: Any) -> Any:
        """Take the published numbers of the table's metric, where no other is named."""
        if not (isinstance(raw, Mapping) and isinstance(raw.get("published"), Mapping)):
            return raw
        metric = {"metric": raw["metric"]} if "metric" in raw else {}
        return {**raw, "published": {**metric, **raw["published"]}}


#: What an experiment can make; of `MEASURED` its runs have to be trained.
Result = Literal["table", "figures", "communication", "properties", "simulation", "round_times"]
MEASURED: frozenset[Result] = frozenset({"table", "figures", "communication", "round_times"})
#: What can be made of runs of any kind; the others are about rounds.
OF_ANY_RUN: frozenset[Result] = frozenset({"table", "figures", "communication"})


class Communication(Settings):
    """Beside what an experiment's runs communicate: what is published, and a run to keep up with.

    `published` is of the memory that predicting needs. `reach` are the cells whose accuracy other
    runs are to reach: those of the same seed that agree with them on all axes which it does not
    name.
    """

    published: Published | None = None
    reach: Annotated[Cells, Field(min_length=1)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _published_of_memory(cls, raw: Any) -> Any:
        """Take the published numbers of memory, where no other are named."""
        if not (isinstance(raw, Mapping) and isinstance(raw.get("published"), Mapping)):
            return raw
        return {**raw, "published": {"metric": "memory_mib", **raw["published"]}}


def _some_values(values: Any) -> Any:
    if isinstance(values, list | dict) and values:
        return values
    allowed = "must be a list, or a mapping of names to values, with at least 1 item"
    raise PydanticCustomError("axis_values", allowed)


#: The values of an axis of the grid, or values by the names that tables are to show.
AxisValues = Annotated[Values, BeforeValidator(_some_values)]


class CellSettings(Settings):
    """Settings of some cells of the grid: of those that have these values, on all these axes."""

    at: Annotated[Cells, Field(min_length=1)]
    settings: Raw


class Scale(Settings):
    """What a scale changes in the base and in methods, and which axes of the grid it replaces.

    `cells` are settings that depend on several axes, such as a rate that was tuned for each method
    and partition.
    """

    base: Raw = {}
    methods: dict[str, Raw] = {}
    grid: dict[str, AxisValues] = {}
    cells: list[CellSettings] = []


class Experiment(Settings):
    """An experiment file.

    `methods` adds to the library of methods, or changes them here. `like` names another experiment
    whose base and methods this one starts from, and whose scales of the same names. `implies` says
    what else comes with a value of an axis: axis -> value -> settings. `results` says what is made
    of the runs; `properties` and `simulation` follow from settings alone, so that nothing is
    trained for them.
    """

    title: str
    like: str | None = None
    base: Raw = {}
    grid: dict[str, AxisValues] = {}
    methods: dict[str, Raw] = {}
    implies: dict[str, dict[str | int | float, Raw]] = {}
    table: Table = Table()
    results: Annotated[list[Result], Field(min_length=1)] = ["table", "figures"]
    communication: Communication = Communication()
    simulation: Simulation = Simulation()
    scales: Annotated[dict[Name, Scale | None], Field(min_length=1)]

    @model_validator(mode="after")
    def _has_what_its_table_is_about(self) -> "Experiment":
        if self.table.metric in SECONDS and (
            "round_times" not in self.results or OF_ANY_RUN & set(self.results)
        ):
            raise ValueError(
                f"table.metric = {self.table.metric!r}: needs results = [round_times], and neither "
                "table nor figures, nor communication, which are of accuracies"
            )
        return self
