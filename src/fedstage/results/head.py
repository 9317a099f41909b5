"""What files about an experiment's runs begin with: which experiment, and the axes of its table."""

from typing import Annotated

from pydantic import Field

from fedstage.settings.base import Settings
from fedstage.settings.experiments import Experiment
from fedstage.settings.merging import Raw
from fedstage.settings.scores import Metric


class ExperimentHead(Settings):
    """An experiment at a scale, and the axes and metric of its table.

    `published` names the paper and table whose numbers stand beside the runs, `notes` say at which
    scales both were measured.
    """

    experiment: str
    scale: str
    title: str
    rows: Annotated[list[str], Field(min_length=1)]
    columns: list[str] = []
    metric: Metric = "top1_accuracy"
    published: str | None = None
    notes: list[str] = []

    @property
    def axes(self) -> list[str]:
        """The axes of the table: rows, then columns."""
        return [*self.rows, *self.columns]


def head_of(name: str, scale: str, experiment: Experiment) -> Raw:
    """Return the head of an experiment, ready for JSON, without what is published."""
    return {
        "experiment": name,
        "scale": scale,
        "title": experiment.title,
        "rows": experiment.table.rows,
        "columns": experiment.table.columns,
        "metric": experiment.table.metric,
    }
