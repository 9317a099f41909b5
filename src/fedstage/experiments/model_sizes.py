"""Models that would be far too large for any machine."""

from collections.abc import Iterator
from functools import cache

from fedstage.errors import FedstageError
from fedstage.models.size import FLOAT, state_size
from fedstage.plan.data_files import AnyRecipe
from fedstage.settings.data import Data
from fedstage.settings.models import Model
from fedstage.settings.one_shot import OneShotRecipe

#: The most numbers that a model may have: 40 GB.
MOST = 10**10
#: The shape assumed for samples whose size only the data determine: the least for any model.
_LEAST = {"images": (1, 32, 32), "features": (1,), "bags": (1,), "tokens": (1,)}


def check_sizes(where: str, recipe: AnyRecipe) -> None:
    """Refuse models of more than `MOST` numbers.

    Raises
    ------
    FedstageError
        Naming the model.
    """
    for key, model in _models(recipe):
        numbers = _numbers(recipe.data, model)
        if numbers > MOST:
            raise FedstageError(
                f"{where}: {key} = {model.name!r}: {numbers:,} numbers, at most {MOST:,} are "
                "allowed"
            )


def _models(recipe: AnyRecipe) -> Iterator[tuple[str, Model]]:
    yield "model", recipe.model
    yield from (("architectures", model) for model in recipe.architectures)
    if isinstance(recipe, OneShotRecipe) and recipe.student is not None:
        yield "student", recipe.student


@cache
def _numbers(data: Data, model: Model) -> int:
    """Return a lower bound of how many numbers a model has."""
    known = data.known
    shape = known.shape or _LEAST[data.samples]
    return state_size(model, shape, known.classes or 2) // FLOAT
