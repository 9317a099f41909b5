"""config.yaml: experiments written in it, what to make, and what only steers the work."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from fedstage.settings.base import Count, Name, Positive, Settings
from fedstage.settings.claims import Claim
from fedstage.settings.experiments import Experiment


class Execution(Settings):
    """How the work is cut into jobs and who does it; results are the same bytes.

    `workers` (by default one a core) and `workers_per_gpu` are the warm processes of a machine,
    `clients_per_gpu` is how many clients of one job train side by side on its GPU, `gpu` is what a
    job asks the scheduler for where `numerics.device` is auto, and `timeout` the seconds after
    which a stage is taken for hung (by default a day).
    """

    granularity: Literal["participant", "round", "segment"] = "participant"
    segment_rounds: Positive = 25
    clients_per_job: Positive | Literal["all"] = 1
    workers: Positive | None = None
    workers_per_gpu: Positive = 1
    clients_per_gpu: Positive = 1
    gpu: Count = 0
    timeout: Positive | None = None

    @model_validator(mode="after")
    def _one_way_of_joining(self) -> "Execution":
        if self.clients_per_job != 1 and self.granularity != "participant":
            raise ValueError(
                f"clients_per_job = {self.clients_per_job!r}: only with granularity = "
                f"'participant', because a {self.granularity} trains all clients of a group"
            )
        return self


#: Which files of a round stay on disk: all; all but the updates that no job reads; what jobs read.
Keep = Literal["all", "models", "needed"]


class Config(Settings):
    """config.yaml: experiments written in it, what to make, and what only steers the work."""

    targets: Annotated[list[str], Field(min_length=1)]
    experiments: dict[Name, Experiment] = {}
    claims: list[Claim] = []
    data_folder: str | None = None
    keep: Keep = "all"
    state_every: Positive = 10
    execution: Execution = Execution()

    @model_validator(mode="after")
    def _files_to_drop(self) -> "Config":
        if self.keep == "needed" and self.execution.granularity == "participant":
            raise ValueError(
                "keep = 'needed': needs execution.granularity = 'round' or 'segment', because "
                "'participant' hands every file on from one job to another; or use 'models'"
            )
        return self
