"""Which participants drop out of a round, and before which step."""

from collections.abc import Mapping
from typing import Any

from fedstage.randomness import fraction
from fedstage.settings.exchange import secure_of
from fedstage.settings.recipes import Recipe
from fedstage.settings.secure import Dropouts

#: The steps that a participant may miss, in their order, by the names of `Dropouts`.
STEPS = tuple(Dropouts.model_fields)


def stays(dropped: Dropouts, step: str, drawn: float) -> bool:
    """Whether a participant that drew a number in [0, 1) is still present in a step."""
    shares: list[float] = [getattr(dropped, name) for name in STEPS]
    return drawn >= sum(shares[: STEPS.index(step) + 1])


def still_there(recipe: Recipe, participant: Mapping[str, Any], step: str) -> bool:
    """Whether a participant, given by its messages' metadata, is still present in a step."""
    key = recipe.seed, "secure_aggregation", participant["round"], participant["client"], "dropout"
    return stays(secure_of(recipe).dropped, step, fraction(*key))
