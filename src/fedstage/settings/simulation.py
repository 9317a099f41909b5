"""Settings of the simulation: the durations of jobs, and the availability of clients."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag

from fedstage.settings.base import Count, NonNegative, Positive, Rate, Settings


class Varying(Settings):
    """Lognormal seconds of jobs; `variation` is the deviation over the mean."""

    mean: Rate
    variation: Rate


def _kind(value: Any) -> str:
    return "varying" if isinstance(value, Mapping | Varying) else "constant"


Seconds = Annotated[
    Annotated[NonNegative, Tag("constant")] | Annotated[Varying, Tag("varying")],
    Discriminator(_kind),  # else each fault would be reported twice
]


class Availability(Settings):
    """Clients come and go: each is available a `share` of the time.

    Intervals are exponentially distributed, available ones with a mean of `interval` seconds.
    Training pauses while its client is away.
    """

    share: Annotated[float, Field(gt=0, lt=1)]
    interval: Rate


class Simulation(Settings):
    """How long the jobs of a round last, in seconds, and what they run on.

    `logits` is for each member of the ensemble. Logits, distillations, trainings on features and
    sharing of heads share the `servers`; aggregations wait for no server. `clients_differ` is the
    deviation over mean of the factor by which clients slow training. Without `availability` they
    are always available. Groups run ahead as far as their edges allow, or at most `rounds_ahead`
    rounds beyond the first incomplete one. The figure shows the first `shown_rounds` rounds.
    """

    local_training: Seconds = 1.0
    aggregation: Seconds = 0.0
    logits: Seconds = 0.0
    distillation: Seconds = 1.0
    head_sharing: Seconds = 0.0
    feature_training: Seconds = 1.0
    cached_labels: Seconds = 0.0
    selected_labels: Seconds = 0.0
    servers: Positive = 1
    clients_differ: NonNegative = 0.0
    availability: Availability | None = None
    rounds_ahead: Count | None = None
    shown_rounds: Positive = 4
