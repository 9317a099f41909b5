"""Settings of config.yaml."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from fedstage.settings.base import Count, Name, Positive, Settings
from fedstage.settings.claims import Claim
from fedstage.settings.experiments import Experiment


class Execution(Settings):
    """How work is cut into jobs, and where these run; the bytes of results do not depend on it."""

    granularity: Literal["participant", "round", "segment"] = "participant"
    """What one job trains: a participant, a round, or a segment of rounds."""
    segment_rounds: Positive = 25
    """Rounds of a segment."""
    clients_per_job: Positive | Literal["all"] = 1
    """Clients that one job trains, with granularity = participant."""
    workers: Positive | None = None
    """Warm processes of a machine, by default one a core."""
    workers_per_gpu: Positive = 1
    """Warm processes of a GPU."""
    clients_per_gpu: Positive = 1
    """Clients of one job that train side by side on its GPU."""
    gpu: Count = 0
    """GPUs that are requested for a job if numerics.device is auto."""
    timeout: Positive | None = None
    """Seconds after which a stage counts as hung, by default a day."""
    other_source: Literal["refuse", "accept"] = "refuse"
    """Files that are up to date for Snakemake, but made by source of another version."""

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
    """What is made: names of experiments, or files."""
    experiments: dict[Name, Experiment] = {}
    """Experiments of this file, by name."""
    claims: list[Claim] = []
    """Claims of this file."""
    data_folder: str | None = None
    """Folder of the raw data."""
    plugins: list[str] = []
    """Your own methods, models and data sets: Python files, and folders of them."""
    keep: Keep = "all"
    """Files of rounds that stay on disk."""
    state_every: Positive = 10
    """Keep the state of every so many rounds."""
    execution: Execution = Execution()
    """How the work is cut into jobs."""

    def _faults(self) -> Iterator[str]:
        if self.keep == "needed" and self.execution.granularity == "participant":
            yield (
                "keep = 'needed': needs execution.granularity = 'round' or 'segment', because "
                "'participant' hands every file on from one job to another; or use 'models'"
            )
