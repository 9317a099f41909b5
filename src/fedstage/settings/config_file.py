"""Settings of config.yaml."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from fedstage.settings.base import Count, Name, Positive, Settings
from fedstage.settings.claims import Claim
from fedstage.settings.experiments import Experiment


class Execution(Settings):
    """How the work is cut into jobs and who does it; the bytes of results do not depend on it.

    `workers` (by default one a core) and `workers_per_gpu` are the warm processes of a machine.
    `clients_per_gpu` clients of one job train side by side on its GPU. `gpu` GPUs are requested for
    a job if `numerics.device` is auto. After `timeout` seconds (by default a day) a stage counts
    as hung.
    """

    granularity: Literal["participant", "round", "segment"] = "participant"
    segment_rounds: Positive = 25
    clients_per_job: Positive | Literal["all"] = 1
    workers: Positive | None = None
    workers_per_gpu: Positive = 1
    clients_per_gpu: Positive = 1
    gpu: Count = 0
    timeout: Positive | None = None

    def _faults(self) -> Iterator[str]:
        if self.clients_per_job != 1 and self.granularity != "participant":
            yield (
                f"clients_per_job = {self.clients_per_job!r}: only with granularity = "
                f"'participant', because a {self.granularity} trains all clients of a group"
            )


#: Files of a round that stay on disk: all; all but updates that no job reads; only files read.
Keep = Literal["all", "models", "needed"]


class Config(Settings):
    """config.yaml: its experiments, the targets, and how the work is executed."""

    targets: Annotated[list[str], Field(min_length=1)]
    experiments: dict[Name, Experiment] = {}
    claims: list[Claim] = []
    data_folder: str | None = None
    keep: Keep = "all"
    state_every: Positive = 10
    execution: Execution = Execution()

    def _faults(self) -> Iterator[str]:
        if self.keep == "needed" and self.execution.granularity == "participant":
            yield (
                "keep = 'needed': needs execution.granularity = 'round' or 'segment', because "
                "'participant' hands every file on from one job to another; or use 'models'"
            )
