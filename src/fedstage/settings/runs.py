"""Settings of a run that are not of its recipe: its length, and what is evaluated."""

from typing import Annotated, Any, Literal

from pydantic import Field

from fedstage.settings.base import Count, Positive, Settings
from fedstage.settings.ensembles import Evaluated, GlobalModel
from fedstage.settings.merging import Raw
from fedstage.settings.scores import Role


class Choose(Settings):
    """Take the values with which a run is most accurate on validation samples.

    The test set cannot choose.
    """

    among: Annotated[dict[str, Annotated[list[Any], Field(min_length=1)]], Field(min_length=1)]
    """Candidates of each setting by its path; all combinations are tried, and the first of equals
    is taken.
    """
    compare_with: Raw = {}
    """With settings such as `validation`, the candidates are trained twice: with these to be
    compared, and without them to be taken.
    """
    on: Literal["validation"] = "validation"
    """The samples that decide."""


class RunLength(Settings):
    """Settings of a run that do not identify its recipe."""

    rounds: Annotated[int, Field(ge=1, le=9900)]  # four digits in names of files
    """Number of rounds."""
    evaluate_every: Positive = 1
    """Evaluate every so many rounds, and the last."""
    evaluate: Evaluated = GlobalModel(name="global_model")
    """The models that are evaluated."""
    evaluate_client: Count | None = None
    """The client whose score counts of clients that train alone, by default the mean over all."""
    role: Role = "test"
    """The evaluated samples."""
    training: Literal["federated", "alone", "pooled", "core", "one_shot"] = "federated"
    """In rounds; each client alone; all data pooled; the server's core alone; or in one shot."""
    choose: Choose | None = None
    """Take the best of several values."""
