"""Seconds of a run's clients and server, from the records of the jobs behind it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from fedstage.errors import FedstageError
from fedstage.plan.discriminators import odds_files
from fedstage.plan.stages import RECIPES
from fedstage.plan.training import SECURE
from fedstage.results.communication.files import held_files
from fedstage.results.round_times.seconds import read_times
from fedstage.results.runs_file import Part
from fedstage.settings.exchange import exchanges_logits
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.settings.recipes import LocalRecipe, Recipe
from fedstage.storage.records import by_path, records_in_order

#: The stages of a one-shot method that clients compute; they may also train an aggregator together.
_CLIENTS = (
    "local_model", "quantised_model", "client_generator", "client_discriminator", "feature_moments",
)  # fmt: skip


@dataclass(frozen=True)
class Seconds:
    """Seconds of computing: of all clients one after the other, and of the server."""

    clients: float
    server: float


def seconds_of(root: Path, parts: Iterable[Part]) -> Seconds:
    """Return the seconds of all parts of a run, with `results` in the folder `root`.

    Evaluation does not count, nor do candidates that were not chosen.

    Raises
    ------
    FedstageError
        If a job has no record.
    """
    shares = [share for part in parts for share in _shares(root, part)]
    of = {by: sum(taken for client, taken in shares if client == by) for by in (True, False)}
    return Seconds(clients=of[True], server=of[False])


def _shares(root: Path, part: Part) -> Iterator[tuple[bool, float]]:
    """Yield, for each job of a part, whether clients compute it, and its seconds."""
    recipe = part.recipe
    if isinstance(recipe, Recipe):
        theirs = ["local_training", *(stage.name for stage in SECURE)]
        theirs += ["logits"] if exchanges_logits(recipe) else []
        for job, timed in read_times(root, recipe, part.length.rounds).items():
            yield job.stage in theirs, timed.seconds
        for record in _behind(root, odds_files(recipe)):
            yield record["stage"] in _CLIENTS, float(record["compute_s"])
        return
    for record in _behind(root, held_files(recipe, part.length)):
        yield _by_clients(recipe, record), float(record["compute_s"])


def _by_clients(recipe: LocalRecipe | OneShotRecipe, record: dict[str, Any]) -> bool:
    """Whether clients do a job for models that are trained to the end."""
    stage = record["stage"]
    if isinstance(recipe, LocalRecipe):
        return not (recipe.pooled or recipe.on_core)
    if stage == "aggregator" and recipe.aggregator_training is not None:
        return True
    of_their_own = record["options"].get("images") in ("validation", "aggregator")
    return stage in _CLIENTS or (stage == "client_logits" and of_their_own)


def _behind(root: Path, files: Sequence[str]) -> list[dict[str, Any]]:
    """Return the records of the jobs that made files, and all files behind these, each once."""
    latest = cache(lambda identity: _latest(root, identity))
    waiting, found = list(dict.fromkeys(files)), dict[str, dict[str, Any]]()
    while waiting:
        file = waiting.pop()
        folder, identity = PurePosixPath(file).parts[1:3]
        if folder in RECIPES and folder != "training" and file not in found:
            record = latest(identity).get(file)
            if record is None:
                raise FedstageError(
                    f"{file}: no record below results/logs has its seconds: the logs were "
                    "deleted; delete the file to make it again"
                )
            found |= dict.fromkeys(by_path(record["outputs"]), record)
            waiting += [path for path in by_path(record["inputs"]) if not path.endswith(".yaml")]
    return list({id(record): record for record in found.values()}.values())


def _latest(root: Path, identity: str) -> dict[str, dict[str, Any]]:
    """Return the last record of each file of a recipe."""
    return {
        file: record
        for record in records_in_order(root, identity)
        for file in by_path(record["outputs"])
    }
