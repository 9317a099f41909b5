"""Groups: which participants train which global model, and with what architecture."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedstage.settings.groups import Groups
    from fedstage.settings.models import Architecture, Head, Lower, Model
    from fedstage.settings.one_shot import OneShotRecipe
    from fedstage.settings.recipes import Recipe

# --- participants ---------------------------------------------------------------------------------


def client_groups(recipe: Groups) -> range:
    """Return the groups that clients train: all except the server's."""
    return range(int(recipe.server_model), recipe.global_models)


@cache
def group_participants(recipe: Groups, group: int) -> range:
    """Return the participants of a round that train a group; the server's group has none.

    If clients have drawn their groups, every group has as many participants as the round, and most
    of them are absent. If clients take part independently, there is one participant per client.
    Participants left over from equal shares go to the first groups, one each.
    """
    groups = client_groups(recipe)
    if group not in groups:
        return range(0)
    if recipe.participation == "poisson":
        return range(recipe.clients)
    number, size = group - groups.start, recipe.participants
    if recipe.client_groups == "drawn":
        return range(number * size, (number + 1) * size)
    share, rest = divmod(size, len(groups))
    first = number * share + min(number, rest)
    return range(first, first + share + (number < rest))


def expected_participants(recipe: Recipe, group: int) -> float:
    """Return n, the mean number of a group's participants, by which its sum is divided."""
    if recipe.participation == "poisson" or recipe.client_groups == "drawn":
        return float(recipe.participants / len(client_groups(recipe)))
    return float(len(group_participants(recipe, group)))


def fewest_models(rule: Any) -> int:
    """Return the smallest number of participants' models that a rule combines."""
    if rule.name == "trimmed_mean":
        return 2 * int(rule.trimmed) + 1
    if rule.name == "krum":
        return max(2 * int(rule.faulty) + 3, int(rule.faulty + rule.selected) + 2)
    return 1


# --- architectures --------------------------------------------------------------------------------


def models_of(recipe: Groups | OneShotRecipe) -> tuple[Model, ...]:
    """Return the architectures of a recipe, the main one first; they may repeat."""
    return recipe.architectures or (recipe.model,)


def model_of(recipe: Groups, group: int) -> Model:
    """Return the architecture of a group."""
    return recipe.architectures[group] if recipe.architectures else recipe.model


def client_models(settings: Groups) -> tuple[Model, ...]:
    """Return the architectures of groups that clients train, without repetitions."""
    groups = client_groups(settings)
    return tuple(dict.fromkeys(model_of(settings, group) for group in groups))


def has_batch_norm(model: Model) -> bool:
    """Whether a model has running statistics of batch normalisation that change in training."""
    trained = model.trainable or ("norm",)
    changes = any(part != "head" and isinstance(part, str) for part in trained)
    return changes and getattr(model, "norm", "none") == "batch"


def head_of(model: Architecture) -> Head | None:
    """Return the head of a model, if it has one."""
    head: Head | None = getattr(model, "head", None)
    return head


def features_of(model: Lower, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of the feature maps that the body of a model gives for a sample."""
    return (model.width, *shape[1:])
