"""Settings of the simulation: the durations of jobs, and the availability of clients."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag

from fedstage.settings.base import Count, NonNegative, Positive, Rate, Settings


class Varying(Settings):
    """Lognormal seconds of jobs."""

    mean: Rate
    """Their mean."""
    variation: Rate
    """Their deviation over the mean."""


def _kind(value: Any) -> str:
    return "varying" if isinstance(value, Mapping | Varying) else "constant"


Seconds = Annotated[
    Annotated[NonNegative, Tag("constant")] | Annotated[Varying, Tag("varying")],
    Discriminator(_kind),  # else each fault would be reported twice
]


class Availability(Settings):
    """Clients come and go.

    Intervals are exponentially distributed. Training pauses while its client is away.
    """

    share: Annotated[float, Field(gt=0, lt=1)]
    """Share of the time for which each client is available."""
    interval: Rate
    """Mean seconds of an interval in which a client is available."""


class Simulation(Settings):
    """How long the jobs of a round last, in seconds, and what they run on.

    Groups run ahead as far as their edges allow.
    """

    local_training: Seconds = 1.0
    """A participant's training."""
    aggregation: Seconds = 0.0
    """An aggregation, which waits for no server."""
    logits: Seconds = 0.0
    """Logits of each member of the ensemble."""
    distillation: Seconds = 1.0
    """A distillation."""
    head_sharing: Seconds = 0.0
    """Sharing of heads."""
    feature_training: Seconds = 1.0
    """Training of the server's model on features."""
    cached_labels: Seconds = 0.0
    """Making labels that are kept."""
    selected_labels: Seconds = 0.0
    """Making labels of samples that the server selects."""
    servers: Positive = 1
    """Servers that share logits, distillations, trainings on features and sharing of heads."""
    clients_differ: NonNegative = 0.0
    """Deviation over mean of the factor by which clients slow training."""
    availability: Availability | None = None
    """By default clients are always available."""
    rounds_ahead: Count | None = None
    """Groups run at most so many rounds beyond the first incomplete one."""
    shown_rounds: Positive = 4
    """The first rounds, which the figure shows."""
