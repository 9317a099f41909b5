"""Settings of a run that are not of its recipe: its length, and what is evaluated."""

from typing import Annotated, Any, Literal

from pydantic import Field

from fedstage.settings.base import Count, Positive, Settings
from fedstage.settings.ensembles import Evaluated, GlobalModel
from fedstage.settings.merging import Raw
from fedstage.settings.scores import Role


class Choose(Settings):
    """Take the values with which a run is most accurate on validation samples.

    `among` has the candidates of each setting by its path; all combinations are tried, and the
    first of equals is taken. With settings to `compare_with`, such as `validation`, the candidates
    are trained twice: with these to be compared, and without them to be taken. The test set cannot
    choose.
    """

    among: Annotated[dict[str, Annotated[list[Any], Field(min_length=1)]], Field(min_length=1)]
    compare_with: Raw = {}
    on: Literal["validation"] = "validation"


class RunLength(Settings):
    """Settings of a run that do not identify its recipe.

    The score of clients that train alone is the mean over all, or that of `evaluate_client`.
    """

    rounds: Annotated[int, Field(ge=1, le=9900)]  # four digits in names of files
    evaluate_every: Positive = 1
    evaluate: Evaluated = GlobalModel(name="global_model")
    evaluate_client: Count | None = None
    role: Role = "test"
    training: Literal["federated", "alone", "pooled", "core", "one_shot"] = "federated"
    choose: Choose | None = None
