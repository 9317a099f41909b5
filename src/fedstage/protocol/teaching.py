"""Who learns what from whom: complete settings of teachers and students, if there are any."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from fedstage.protocol.groups import has_batch_norm, models_of

if TYPE_CHECKING:
    from fedstage.settings.data import Public
    from fedstage.settings.ensembles import EnsembleTrainer, GlobalTrainer
    from fedstage.settings.generators import RoundGenerator
    from fedstage.settings.one_shot import OneShotRecipe
    from fedstage.settings.recipes import Recipe
    from fedstage.settings.server import Server
    from fedstage.settings.transfers import OneShotTransfer, Transfer

How = TypeVar("How", covariant=True)


@dataclass(frozen=True)
class Teaching(Generic[How]):
    """How students learn: the `distillation` of `public` samples, with a `server`'s settings."""

    server: Server
    distillation: How
    public: Public


@dataclass(frozen=True)
class EnsembleTeaching(Teaching[Any]):
    """What is learnt in rounds from an `ensemble`, by students of a `trainer` or by clients.

    A `generator`, if there is one, makes images in place of public ones.
    """

    distillation: Transfer
    ensemble: EnsembleTrainer
    trainer: GlobalTrainer | None
    generator: RoundGenerator | None


@overload
def teaching(recipe: Recipe) -> EnsembleTeaching | None: ...
@overload
def teaching(recipe: OneShotRecipe) -> Teaching[OneShotTransfer] | None: ...
def teaching(recipe: Any) -> Any:
    """Return what students, or clients, learn and from whom, if any do."""
    if getattr(recipe, "training", "") == "one_shot":
        how, server = recipe.distillation, recipe.server
        if how is None or how.teacher == "moments" or server is None:
            return None
        return Teaching(server, how, recipe.public)
    if not is_taught(recipe) or recipe.ensemble is None or recipe.server is None:
        return None
    learnt = (recipe.server, recipe.distillation, recipe.public)
    return EnsembleTeaching(*learnt, recipe.ensemble, recipe.global_trainer, recipe.generator)


@overload
def teaching_of(recipe: Recipe) -> EnsembleTeaching: ...
@overload
def teaching_of(recipe: OneShotRecipe) -> Teaching[OneShotTransfer]: ...
def teaching_of(recipe: Any) -> Any:
    """Return what students of a recipe learn and from whom; it must have students."""
    found = teaching(recipe)
    assert found is not None, "the graph has such stages only of recipes with students"
    return found


def server_of(recipe: Recipe | OneShotRecipe) -> Server:
    """Return the settings with which a recipe's server trains; it must train something."""
    assert recipe.server is not None, "checked by the recipe: training on the server needs these"
    return recipe.server


# --- in rounds ------------------------------------------------------------------------------------


def is_taught(recipe: Recipe) -> bool:
    """Whether students, or clients, are to learn from an ensemble."""
    return recipe.global_trainer is not None or recipe.local.exchanges == "logits"


def learns(recipe: Recipe) -> bool:
    """Whether anything learns from an ensemble in the rounds."""
    return teaching(recipe) is not None


@cache
def students(recipe: Recipe) -> tuple[int, ...]:
    """Return the groups whose global models are distilled."""
    trainer = recipe.global_trainer
    if trainer is None:
        return ()
    if trainer.name == "basic":
        return tuple(range(recipe.global_models))
    if trainer.main == "first":
        return (0,)
    models = models_of(recipe)
    return tuple(sorted({models.index(model) for model in models}))


def goes_on(recipe: Recipe) -> bool:
    """Whether students start from the global models of the previous round."""
    trainer = recipe.global_trainer
    return trainer is not None and trainer.starts_from == "previous"


def generates(recipe: Recipe) -> bool:
    """Whether students learn from images that the server generates instead of public ones."""
    return recipe.global_trainer is not None and recipe.generator is not None


def re_estimates(recipe: Recipe) -> bool:
    """Whether every aggregation re-estimates running statistics on public images."""
    return recipe.aggregation.batch_norm == "re_estimate" and any(
        map(has_batch_norm, models_of(recipe))
    )


def reads_public(recipe: Recipe) -> bool:
    """Whether students, clients or running statistics need the public samples."""
    return is_taught(recipe) or re_estimates(recipe)
