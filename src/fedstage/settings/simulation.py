"""Settings of the simulation: the durations of jobs, and the availability of clients."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag

from fedstage.settings.base import Count, NonNegative, Positive, Rate, Settings


class Varying(Settings):
    """A lognormally distributed duration of jobs, in seconds."""

    mean: Rate
    """Mean of the duration, in seconds."""
    variation: Rate
    """Standard deviation of the duration, divided by the mean."""


def _kind(value: Any) -> str:
    return "varying" if isinstance(value, Mapping | Varying) else "constant"


Seconds = Annotated[
    Annotated[NonNegative, Tag("constant")] | Annotated[Varying, Tag("varying")],
    Discriminator(_kind),  # else each fault would be reported twice
]


class Availability(Settings):
    """Clients are available only part of the time.

    Intervals are exponentially distributed. Training pauses while its client is away.
    """

    share: Annotated[float, Field(gt=0, lt=1)]
    """Share of the time during which each client is available."""
    interval: Rate
    """Mean length of an interval in which a client is available, in seconds."""


class Simulation(Settings):
    """Durations of the jobs of a round, in seconds, and the resources that the jobs run on.

    Groups run ahead as far as their dependencies allow.
    """

    local_training: Seconds = 1.0
    """Duration of a participant's training, in seconds."""
    aggregation: Seconds = 0.0
    """Duration of an aggregation, in seconds; an aggregation waits for no server."""
    logits: Seconds = 0.0
    """Duration of computing the logits of one member of the ensemble, in seconds."""
    distillation: Seconds = 1.0
    """Duration of a distillation, in seconds."""
    head_sharing: Seconds = 0.0
    """Duration of sharing heads, in seconds."""
    feature_training: Seconds = 1.0
    """Duration of training the server's model on features, in seconds."""
    cached_labels: Seconds = 0.0
    """Duration of making labels that are kept, in seconds."""
    selected_labels: Seconds = 0.0
    """Duration of making labels of samples that the server selects, in seconds."""
    servers: Positive = 1
    """Number of servers among which logits, distillations, trainings on features and sharing of
    heads are divided.
    """
    clients_differ: NonNegative = 0.0
    """Standard deviation, divided by the mean, of the factor by which clients slow training."""
    availability: Availability | None = None
    """When clients are available; by default always."""
    rounds_ahead: Count | None = None
    """Number of rounds that groups may run beyond the first incomplete one; by default any."""
    shown_rounds: Positive = 4
    """Number of first rounds that the figure shows."""
