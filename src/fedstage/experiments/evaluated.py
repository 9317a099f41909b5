"""Checks of how a run is scored: its samples must exist, and its models must be trained."""

from collections.abc import Iterator

from fedstage.errors import FedstageError
from fedstage.plan.data_files import AnyRecipe
from fedstage.plan.rounds import evaluated_rounds, is_idle
from fedstage.settings.base import alternatives
from fedstage.settings.data import Data
from fedstage.settings.ensembles import GlobalModel, SplitModel
from fedstage.settings.exchange import exchanges_features, students, weights_travel
from fedstage.settings.groups import client_groups
from fedstage.settings.privacy import client_privacy
from fedstage.settings.recipes import Recipe
from fedstage.settings.runs import RunLength


def check_evaluated(where: str, recipe: AnyRecipe, length: RunLength) -> None:
    """Refuse samples that the data lacks, clients without a model, and untrained models."""
    for fault in _faults(recipe, length):
        raise FedstageError(f"{where}: {fault}")


def _faults(recipe: AnyRecipe, length: RunLength) -> Iterator[str]:
    if length.role == "validation" and not recipe.validation:
        yield "validation = 0: role = 'validation' needs more than 0"
    if length.role == "test_own" and not recipe.data.has_own_test:
        kinds = (kind for kind in alternatives(Data) if getattr(kind, "has_own_test", False))
        allowed = " or ".join(name for kind in kinds for name in kind.names())
        yield f"role = 'test_own': only for data = {allowed}, and here data = {recipe.data.name}"
    client, last = length.evaluate_client, recipe.clients - 1
    if client is not None and length.training != "alone":
        yield f"evaluate_client = {client}: only for training = alone, not {length.training}"
    elif client is not None and client > last:
        yield f"evaluate_client = {client}: at most {last}, the last of clients = {recipe.clients}"
    if isinstance(recipe, Recipe):
        yield from _of_private(recipe, length)
        yield from _of_untrained(recipe, length)
        yield from _of_absent(recipe, length)


def _of_untrained(recipe: Recipe, length: RunLength) -> Iterator[str]:
    """Yield that a main model, or averaged models, keep their initial weights."""
    evaluated, allowed = f"evaluate = {length.evaluate.name!r}", "use each_client or clients"
    if exchanges_features(recipe):
        allowed = "use split_model, each_client or clients"
    elif isinstance(length.evaluate, SplitModel):
        yield f"{evaluated}: only with local = gkt, whose clients send features"
    reason = None
    if isinstance(length.evaluate, GlobalModel):
        reason = why_untrained(recipe)
    elif "aggregated" in length.evaluate.members:
        reason = _why_not_averaged(recipe)
    if reason:
        yield f"{evaluated}: {reason}; {allowed}"


def _of_absent(recipe: Recipe, length: RunLength) -> Iterator[str]:
    """Yield the rounds whose participants' models are scored, and in which all are absent."""
    if getattr(length.evaluate, "members", ()) not in (("clients",), ("split",)):
        return
    for round_ in evaluated_rounds(length.rounds, length.evaluate_every):
        if is_idle(recipe, round_):
            yield (
                f"evaluate = {length.evaluate.name!r}: all participants are absent in round "
                f"{round_} with withdraw_stale = true; use global_model, or another evaluate_every"
            )


def _of_private(recipe: Recipe, length: RunLength) -> Iterator[str]:
    """Yield that single clients' models are scored, to which no noise is added."""
    hidden = client_privacy(recipe) is not None
    if hidden and set(getattr(length.evaluate, "members", ())) - {"aggregated"}:
        yield (
            f"evaluate = {length.evaluate.name!r}: must be global_model or aggregated with "
            "privacy.client, because no noise is added to single clients' models"
        )


def why_untrained(recipe: Recipe) -> str | None:
    """Return why a recipe's main model cannot be scored, None if it can."""
    if 0 in students(recipe) or recipe.head_sharing:
        return None
    if exchanges_features(recipe):
        return f"alone it takes features, and no samples, with local = {recipe.local.name}"
    if 0 not in client_groups(recipe):
        return "nobody trains it with server_model = true, global = null and head_sharing = false"
    return _why_not_averaged(recipe)


def _why_not_averaged(recipe: Recipe) -> str | None:
    if weights_travel(recipe):
        return None
    return (
        f"nobody trains it with local = {recipe.local.name}, where no weights travel, so nothing "
        "is averaged"
    )
