"""Checks of how a run is scored: its samples must exist, and its models must be trained."""

from fedstage.errors import FedstageError
from fedstage.plan.data_files import AnyRecipe
from fedstage.plan.rounds import evaluated_rounds
from fedstage.plan.staleness import is_idle
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
    if length.role == "validation" and not recipe.validation:
        raise FedstageError(f"{where}: validation = 0: role = 'validation' needs more than 0")
    if length.role == "test_own" and not recipe.data.has_own_test:
        kinds = (kind for kind in alternatives(Data) if getattr(kind, "has_own_test", False))
        allowed = " or ".join(name for kind in kinds for name in kind.names())
        raise FedstageError(
            f"{where}: role = 'test_own': only for data = {allowed}, and here "
            f"data = {recipe.data.name}"
        )
    _check_client(f"{where}: evaluate_client = {length.evaluate_client}", recipe, length)
    if isinstance(recipe, Recipe):
        _check_private(where, recipe, length)
        _check_trained(where, recipe, length)
        _check_present(where, recipe, length)


def _check_client(where: str, recipe: AnyRecipe, length: RunLength) -> None:
    """Refuse to score a client that has no own model."""
    if length.evaluate_client is None:
        return
    if length.training != "alone":
        raise FedstageError(f"{where}: only for training = alone, not {length.training}")
    if length.evaluate_client >= recipe.clients:
        last = f"the last of clients = {recipe.clients}"
        raise FedstageError(f"{where}: at most {recipe.clients - 1}, {last}")


def _check_trained(where: str, recipe: Recipe, length: RunLength) -> None:
    """Refuse to score a main model, or averaged models, that keep their initial weights."""
    evaluated = f"{where}: evaluate = {length.evaluate.name!r}"
    allowed = "use each_client or clients"
    if exchanges_features(recipe):
        allowed = "use split_model, each_client or clients"
    elif isinstance(length.evaluate, SplitModel):
        raise FedstageError(f"{evaluated}: only with local = gkt, whose clients send features")
    reason = None
    if isinstance(length.evaluate, GlobalModel):
        reason = why_untrained(recipe)
    elif "aggregated" in length.evaluate.members:
        reason = _why_not_averaged(recipe)
    if reason:
        raise FedstageError(f"{evaluated}: {reason}; {allowed}")


def _check_present(where: str, recipe: Recipe, length: RunLength) -> None:
    """Refuse to score the participants' models of a round in which all are absent."""
    members = getattr(length.evaluate, "members", ())
    if members not in (("clients",), ("split",)):
        return
    for round_ in evaluated_rounds(length.rounds, length.evaluate_every):
        if is_idle(recipe, round_):
            raise FedstageError(
                f"{where}: evaluate = {length.evaluate.name!r}: all participants are absent in "
                f"round {round_} with withdraw_stale = true; use global_model, or another "
                "evaluate_every"
            )


def _check_private(where: str, recipe: Recipe, length: RunLength) -> None:
    """Refuse to score single clients' models, to which no noise is added."""
    hidden = client_privacy(recipe) is not None
    if hidden and set(getattr(length.evaluate, "members", ())) - {"aggregated"}:
        raise FedstageError(
            f"{where}: evaluate = {length.evaluate.name!r}: must be global_model or aggregated "
            "with privacy.client, because no noise is added to single clients' models"
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
