"""Settings of config.yaml."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from fedstage.settings.base import Count, Name, Positive, Settings
from fedstage.settings.claims import Claim
from fedstage.settings.experiments import Experiment


class Execution(Settings):
    """How work is divided into jobs, and where; the bytes of results do not depend on it."""

    granularity: Literal["participant", "round", "segment"] = "participant"
    """What one job trains: one participant, or one segment of rounds; `round`: of one round."""
    segment_rounds: Positive = 25
    """Number of rounds per segment."""
    workers: Positive | None = None
    """Number of warm processes per machine; by default one per core."""
    workers_per_gpu: Positive = 1
    """Number of warm processes per GPU."""
    clients_per_gpu: Positive = 1
    """Number of clients of one job that train concurrently on its GPU."""
    gpu: Count = 0
    """Number of GPUs requested for each job if numerics.device is auto."""
    timeout: Positive | None = None
    """Time, in seconds, after which a stage counts as hung; by default one day."""


class Config(Settings):
    """Settings of config.yaml: experiments, targets, and how the work is executed."""

    targets: Annotated[list[str], Field(min_length=1)]
    """What to make: names of experiments, or files."""
    experiments: dict[Name, Experiment] = {}
    """Experiments defined in this file, by name."""
    claims: list[Claim] = []
    """Claims defined in this file."""
    data_folder: str | None = None
    """Folder of the raw data; by default the value of the environment variable FEDSTAGE_DATA."""
    plugins: list[str] = []
    """Python files, and folders of them, with your own methods, models and data sets."""
    keep: Literal["all", "needed"] = "all"
    """Files of rounds that stay on disk: `all`, or only files that are read (`needed`)."""
    execution: Execution = Execution()
    """How the work is divided into jobs and where they run."""

    def _faults(self) -> Iterator[str]:
        if self.keep == "needed" and self.execution.granularity == "participant":
            yield (
                "keep = 'needed': needs execution.granularity = 'round' or 'segment', because "
                "'participant' hands every file on from one job to another"
            )
