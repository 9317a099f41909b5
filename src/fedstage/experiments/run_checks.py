"""Checks of runs: what is scored and presented exists, and secure aggregation hides clients."""

from collections.abc import Iterable, Iterator

from fedstage.errors import FedstageError
from fedstage.plan.data_files import AnyRecipe
from fedstage.plan.exposure import exposed, predicting
from fedstage.plan.runs import Run
from fedstage.protocol.exchange import exchanges_features, weights_travel
from fedstage.protocol.groups import client_groups
from fedstage.protocol.privacy import client_privacy
from fedstage.protocol.rounds import evaluated_rounds, is_idle
from fedstage.protocol.teaching import students
from fedstage.settings.ensembles import GlobalModel, SplitModel
from fedstage.settings.experiments import OF_ANY_RUN, Result
from fedstage.settings.merging import Raw
from fedstage.settings.recipes import LocalRecipe, Recipe
from fedstage.settings.runs import RunLength
from fedstage.settings.scores import Axis


def check_evaluated(where: str, recipe: AnyRecipe, length: RunLength) -> None:
    """Refuse samples that the data lacks, clients without a model, and untrained models."""
    for fault in _faults(recipe, length):
        raise FedstageError(f"{where}: {fault}")


def _faults(recipe: AnyRecipe, length: RunLength) -> Iterator[str]:
    if length.role == "validation" and not recipe.validation:
        yield "validation = 0: role = 'validation' needs more than 0"
    if length.role == "test_own" and not recipe.data.has_own_test:
        yield f"role = 'test_own': data = {recipe.data.name} has no test samples of each client"
    client, last = length.evaluate_client, recipe.clients - 1
    if client is not None and (length.training != "alone" or client > last):
        yield f"evaluate_client = {client}: only for training = alone, and at most {last}"
    if isinstance(recipe, Recipe):
        yield from _of_rounds(recipe, length)


def _of_rounds(recipe: Recipe, length: RunLength) -> Iterator[str]:
    """Yield that models are scored which nobody trains, or that privacy hides."""
    evaluated, members = length.evaluate, getattr(length.evaluate, "members", ())
    where = f"evaluate = {evaluated.name!r}"
    if client_privacy(recipe) is not None and set(members) - {"aggregated"}:
        yield (
            f"{where}: must be global_model or aggregated with privacy.client, as no noise is "
            "added to single clients' models"
        )
    if isinstance(evaluated, SplitModel) and not exchanges_features(recipe):
        yield f"{where}: only with local = gkt, whose clients send features"
    reason = why_untrained(recipe) if isinstance(evaluated, GlobalModel) else None
    if "aggregated" in members and not weights_travel(recipe):
        reason = f"nothing is averaged with local = {recipe.local.name}"
    if reason:
        yield f"{where}: {reason}; use each_client or clients, or split_model with gkt"
    for round_ in evaluated_rounds(length.rounds, length.evaluate_every):
        if members in (("clients",), ("split",)) and is_idle(recipe, round_):
            yield (
                f"{where}: all participants are absent in round {round_} with withdraw_stale = "
                "true; use global_model, or another evaluate_every"
            )


def why_untrained(recipe: Recipe) -> str | None:
    """Return why a recipe's main model cannot be scored, None if it can."""
    if 0 in students(recipe) or recipe.head_sharing:
        return None
    if 0 in client_groups(recipe) and weights_travel(recipe):
        return None
    return f"nobody trains the main model with local = {recipe.local.name}, and it is no student"


def check_secure(where: str, settings: Raw, recipe: AnyRecipe, length: RunLength) -> None:
    """Refuse secure aggregation where a stage of the server reads what a single client sends."""
    if not (settings.get("aggregation") or {}).get("secure") or isinstance(recipe, LocalRecipe):
        return
    if seen := exposed(predicting(recipe, length)):
        raise FedstageError(
            f"{where}: aggregation.secure: stage {seen.stage} reads {seen.file}, which contains "
            "individual client data; secure aggregation requires methods whose server needs only "
            "sums"
        )


def check_results(where: str, results: Iterable[Result], runs: Iterable[Run]) -> None:
    """Refuse runs without rounds, or without a main model, for results that need them."""
    about_rounds = [result for result in results if result not in OF_ANY_RUN]
    for run in runs if about_rounds else ():
        method = f"method {run.axes['method']}"
        if not isinstance(run.recipe, Recipe):
            raise FedstageError(
                f"{where}: results = {about_rounds[0]!r}: {method} has training "
                f"= {run.length.training!r}: must be 'federated' for this result"
            )
        of_main = [result for result in about_rounds if result in ("retention", "clients")]
        if of_main and (reason := why_untrained(run.recipe)):
            raise FedstageError(
                f"{where}: results = {of_main[0]!r}: main model of {method}: {reason}"
            )


def check_labels(where: str, runs: Iterable[Run]) -> None:
    """Refuse methods that tables and figures would show by the same name."""
    first: dict[str, Axis] = {}
    for run in runs:
        method = run.axes["method"]
        label = run.style.label or str(method)
        other = first.setdefault(label, method)
        if other != method:
            raise FedstageError(
                f"{where}: methods.{method}.label = {label!r}: is what {other} is called as well; "
                "one method per label is allowed"
            )
