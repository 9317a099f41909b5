"""Settings of the simulation: how long jobs last, and when clients are there."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag

from fedstage.settings.base import Count, NonNegative, Positive, Rate, Settings


class Varying(Settings):
    """Seconds that differ from job to job: lognormal, `variation` is deviation over mean."""

    mean: Rate
    variation: Rate


def _kind(value: Any) -> str:
    return "varying" if isinstance(value, Mapping | Varying) else "constant"


Seconds = Annotated[
    Annotated[NonNegative, Tag("constant")] | Annotated[Varying, Tag("varying")],
    Discriminator(_kind),  # else a fault would be told once for each of the two
]


class Availability(Settings):
    """Clients come and go: each is available a `share` of the time.

    Intervals are exponentially distributed; those in which a client is available last `interval`
    seconds in the mean. Training pauses while its client is away.
    """

    share: Annotated[float, Field(gt=0, lt=1)]
    interval: Rate


class Simulation(Settings):
    """How long the jobs of a round last, in seconds, and what they run on.

    `logits` is for each member of the ensemble. Logits and distillations share the `servers`;
    aggregations wait for none of them. `clients_differ` is the deviation over mean of the clients'
    own slowness, a factor on their training. Without `availability` they are always there. Groups
    that wait for no distillation go on as far as their edges let them, or by `rounds_ahead` at most
    so many rounds beyond the first that is not complete. The figure shows the first `shown_rounds`
    rounds.
    """

    local_training: Seconds = 1.0
    aggregation: Seconds = 0.0
    logits: Seconds = 0.0
    distillation: Seconds = 1.0
    servers: Positive = 1
    clients_differ: NonNegative = 0.0
    availability: Availability | None = None
    rounds_ahead: Count | None = None
    shown_rounds: Positive = 4
