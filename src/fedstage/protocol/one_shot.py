"""One shot: whose models are aggregated, their architectures, and what a student learns from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedstage.settings.models import Model
    from fedstage.settings.one_shot import OneShotRecipe
    from fedstage.settings.recipes import LocalRecipe


def members(recipe: OneShotRecipe) -> list[int]:
    """Return the clients whose models are aggregated, or are candidates for it."""
    return [client for client in range(recipe.clients) if client not in recipe.forget]


def dealt_models(config: Any) -> list[Model]:
    """Return the architecture of each client; several architectures are assigned in turn."""
    models = config.architectures or (config.model,)
    return [models[client % len(models)] for client in range(config.clients)]


def client_model(recipe: LocalRecipe | OneShotRecipe, client: int) -> Model:
    """Return the architecture of a client, with the outputs that its training needs."""
    model = dealt_models(recipe)[client]
    learnt = recipe.unknown or recipe.prototypes
    if learnt is None:
        return model
    return model.model_copy(update={"more_outputs": learnt.more_outputs})


def client_of(who: str) -> int | None:
    """Return the number of a client that trains alone, None for pooled data and the core."""
    return int(who.removeprefix("client_")) if who.startswith("client_") else None


def trained_on(recipe: LocalRecipe) -> str | None:
    """Return what a single model is trained on: ``pooled`` or ``core``; None if each client is."""
    return "pooled" if recipe.pooled else "core" if recipe.on_core else None


def learns_from_ensemble(recipe: OneShotRecipe) -> bool:
    """Whether an ensemble predicts, or teaches the student on public images."""
    return recipe.distillation is None or recipe.distillation.teacher == "ensemble"


def learns_from_moments(recipe: OneShotRecipe) -> bool:
    """Whether a recipe's model has a head that follows from moments of clients' features."""
    return recipe.distillation is not None and recipe.distillation.teacher == "moments"


def changes_loss(unknown: Any) -> bool:
    """Whether clients that learn an unknown class minimise more than the loss of their labels."""
    return unknown.outliers is not None or bool(unknown.second or unknown.mixed)
