"""The runs of an experiment, as far as their communication goes, as a file."""

from typing import Annotated

from pydantic import Field

from fedstage.plan.runs import RunLength
from fedstage.results.head import ExperimentHead
from fedstage.settings.base import Settings
from fedstage.settings.lines import Line, LocalLine
from fedstage.settings.one_shot import OneShotLine
from fedstage.settings.scores import Axis, Cells


class Part(Settings):
    """One of the runs that go on from one another: its length, and one of three kinds of lines."""

    length: RunLength
    federated: Line | None = None
    one_shot: OneShotLine | None = None
    local: LocalLine | None = None

    @property
    def line(self) -> Line | OneShotLine | LocalLine:
        """The line."""
        found = self.federated or self.one_shot or self.local
        assert found is not None, "written by describe_communication"
        return found


class CandidateRun(Settings):
    """A run: the parts that it consists of, the first one first.

    `values` tell it apart from others of which one is chosen.
    """

    values: dict[str, Axis] = {}
    parts: Annotated[list[Part], Field(min_length=1)]


class CommunicationRun(Settings):
    """A run of an experiment: its value on every axis, its metrics, and what it is made of.

    Of several `candidates` the file `chosen` says which it is. `validation` are the metrics on
    validation samples of a federated run that has any. `memory_mib` is what a paper reports.
    """

    settings: dict[str, Axis]
    metrics: str
    candidates: Annotated[list[CandidateRun], Field(min_length=1)]
    chosen: str | None = None
    validation: Annotated[list[str], Field(min_length=1)] | None = None
    memory_mib: float | None = None


class CommunicationRuns(ExperimentHead):
    """What is known of an experiment's communication before anything is trained."""

    reach: Cells | None = None
    runs: Annotated[list[CommunicationRun], Field(min_length=1)]
