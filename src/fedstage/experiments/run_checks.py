"""Checks of runs: their keys, what is scored and presented, clients to count, what is hidden."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from fedstage.data.layouts import count_clients, in_layout
from fedstage.errors import FedstageError, UncountedClients
from fedstage.plan.data_files import AnyRecipe, data_file
from fedstage.plan.runs import Run, exposed, predicting
from fedstage.protocol.exchange import exchanges_features, keeps_parts, merges, weights_travel
from fedstage.protocol.groups import client_groups
from fedstage.protocol.privacy import client_privacy
from fedstage.protocol.rounds import evaluated_rounds, is_idle
from fedstage.protocol.teaching import students
from fedstage.settings.data import Data, DataOption
from fedstage.settings.data_sets import Sized
from fedstage.settings.ensembles import GlobalModel, OwnModels, SplitModel
from fedstage.settings.experiments import OF_ANY_RUN, Result
from fedstage.settings.merging import Raw
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.settings.partitions import Natural
from fedstage.settings.recipes import LocalRecipe, Recipe
from fedstage.settings.runs import RunLength
from fedstage.settings.samples import check_clients
from fedstage.settings.scores import Axis
from fedstage.settings.validation import keys, keys_at, suggest, validate
from fedstage.storage.files import load_json
from fedstage.storage.raw_files import default_folder


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
    if set(members) - {"aggregated"}:
        if client_privacy(recipe) is not None:
            yield (
                f"{where}: must be global_model or aggregated with privacy.client, as no noise is "
                "added to single clients' models"
            )
        if merges(recipe.model):
            yield f"{where}: must be global_model or aggregated with lora.merged = true"
    personal = recipe.local.has_own_model or keeps_parts(recipe)
    if isinstance(evaluated, OwnModels) and not personal:
        yield f"{where}: only with personal parts, local statistics, or local = ditto"
    if isinstance(evaluated, SplitModel) and not exchanges_features(recipe):
        yield f"{where}: only with local = gkt, whose clients send features"
    reason = why_untrained(recipe) if isinstance(evaluated, GlobalModel) else None
    if "aggregated" in members and not weights_travel(recipe):
        reason = f"nothing is averaged with local = {recipe.local.name}"
    if reason:
        yield f"{where}: {reason}; use each_client or clients, own_models or split_model"
    for round_ in evaluated_rounds(length.rounds, length.evaluate_every):
        if members in (("clients",), ("own",), ("split",)) and is_idle(recipe, round_):
            yield (
                f"{where}: all participants are absent in round {round_} with withdraw_stale = "
                "true; use global_model, or another evaluate_every"
            )


def why_untrained(recipe: Recipe) -> str | None:
    """Return why a recipe's main model cannot be scored, None if it can."""
    if recipe.personal is not None:
        return "personal parts are trained in clients' models alone"
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


#: All settings of a run, and their keys.
_KINDS = (Recipe, OneShotRecipe, RunLength)
_KNOWN = dict.fromkeys(key for kind in _KINDS for key in keys(kind))


def check_keys(where: str, settings: Mapping[str, Any], more: Collection[str] = ()) -> None:
    """Refuse keys that are neither a setting of any run nor one of `more`.

    Raises
    ------
    FedstageError
        If there are such keys; the message has a line for each.
    """
    faults = [
        f"{where}: {key} = {value!r}: unknown key{_meant(key, sorted({*_KNOWN, *more}))}"
        for key, value in settings.items()
        if key not in _KNOWN and key not in more
    ]
    if faults:
        raise FedstageError("\n".join(faults))


def _meant(key: str, known: Iterable[str]) -> str:
    """Return what a key may have meant: a setting inside a part, one spelt like it, or any."""
    for part in _KNOWN:
        if key != "name" and any(key in keys_at(kind, [part]) for kind in _KINDS):
            return f"; did you mean '{part}.{key}'?"
    return suggest(key, known) or f"; use one of {', '.join(known)}"


KEY = "clients"


def with_clients(where: str, settings: Raw, folder: Path | None) -> Raw:
    """Return settings with the number of `clients`, if the partition is natural and none is given.

    `folder` is the data folder, by default the environment's. If the files are missing, the number
    is taken from the data set as it was made, if its results are here.

    Raises
    ------
    FedstageError
        If there is no such number; UncountedClients if its files are missing or invalid.
    """
    partition, data = settings.get("partition"), settings.get("data")
    natural = isinstance(partition, dict) and partition.get("name") == "natural"
    if KEY in settings or not natural or data is None:
        return settings
    chosen = validate(DataOption, {"data": data}, where).data
    for fault in check_clients(chosen, Natural(name="natural")):
        raise FedstageError(f"{where}: {fault}")
    count: int | None
    try:
        count = _count(where, chosen, folder or default_folder())
    except UncountedClients:
        if (count := _made(chosen)) is None:
            raise
    return {**settings, KEY: count}


def _made(data: Data) -> int | None:
    """Return how many clients a data set had when it was made, None if it was not made here.

    A `division` gives its clients other samples than the data set names.
    """
    path = Path(data_file(data, "info"))
    divided = isinstance(data, Sized) and data.division is not None
    if divided or not path.is_file():
        return None
    return len(load_json(path).get("client_names", ())) or None


def _count(where: str, data: Data, folder: Path | None) -> int:
    if data.centres is not None:
        return data.centres
    if not in_layout(data):
        raise FedstageError(
            f"{where}: clients: not given; how many data = {data.name} has depends on its "
            "settings, give a number and the stage partition names the right one"
        )
    if folder is None:
        raise UncountedClients(
            f"{where}: clients: not given, and no data folder to count them in; set data_folder in "
            "config.yaml or FEDSTAGE_DATA, or give clients"
        )
    try:
        return count_clients(data, folder)
    except FedstageError as error:
        raise UncountedClients(
            f"{where}: clients: not given, and cannot be counted: {error}"
        ) from None
