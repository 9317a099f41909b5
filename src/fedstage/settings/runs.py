"""Settings of a run that are not part of its recipe: its length, and what is evaluated."""

from typing import Annotated, Any, Literal

from pydantic import Field

from fedstage.settings.base import Count, Positive, Settings
from fedstage.settings.ensembles import Evaluated, GlobalModel
from fedstage.settings.merging import Raw
from fedstage.settings.scores import Role


class Choose(Settings):
    """Choose the values with which a run is most accurate on validation samples.

    The test set cannot be used to choose.
    """

    among: Annotated[dict[str, Annotated[list[Any], Field(min_length=1)]], Field(min_length=1)]
    """Candidate values of each setting, by its path. All combinations are tried, and the first of
    equally good ones is taken.
    """
    compare_with: Raw = {}
    """Additional settings, such as `validation`, with which candidates are trained to be compared.
    The run's metrics are then from a training without them.
    """


class RunLength(Settings):
    """Settings of a run that do not belong to its recipe."""

    rounds: Annotated[int, Field(ge=1, le=9900)]  # four digits in file names
    """Number of rounds."""
    evaluate_every: Positive = 1
    """Interval between evaluations, in rounds; the last round is always evaluated."""
    evaluate: Evaluated = GlobalModel(name="global_model")
    """Models that are evaluated."""
    evaluate_client: Count | None = None
    """Client whose score counts if clients train alone; by default the mean over all clients
    counts.
    """
    role: Role = "test"
    """Samples on which models are evaluated."""
    training: Literal["federated", "alone", "pooled", "core", "one_shot"] = "federated"
    """How models are trained: in federated rounds; each client alone; on all data pooled; on the
    server's core alone; or in one shot.
    """
    choose: Choose | None = None
    """Values of settings from which the best are chosen; by default none."""
