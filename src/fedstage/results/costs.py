"""What methods cost: seconds of clients and server, and their table."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from fedstage.errors import FedstageError
from fedstage.experiments.runs_file import SEED, Part
from fedstage.plan.stages import RECIPES
from fedstage.plan.traffic import held_files
from fedstage.plan.training import SECURE
from fedstage.plan.training_folder import odds_files
from fedstage.protocol.exchange import exchanges_logits
from fedstage.results.intervals import interval_of_differences
from fedstage.results.round_times import read_times
from fedstage.results.tables.columns import (
    Column,
    Row,
    TextTable,
    average,
    by_cell,
    known,
    text_table,
)
from fedstage.results.tables.labels import (
    NOTHING,
    PRIVACY_LEGEND,
    head_of,
    human_bytes,
    show_guarantee,
    show_value,
    signed_interval,
)
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.settings.recipes import LocalRecipe, Recipe
from fedstage.settings.scores import Metric
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


# --- the table ------------------------------------------------------------------------------------

_MIB = 2**20


def _seconds(value: float) -> str:
    return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f}"


def _with_interval(differences: Sequence[float]) -> str:
    """Write the mean of differences, and its 95 % interval where it has one."""
    found = interval_of_differences(differences)
    return signed_interval(found.mean, found.low, found.high)


#: The score of a run in percent, and its costs: bytes that the mean client sends and receives,
#: seconds of all clients (one after the other) and of the server until training ends, and bytes
#: that prediction needs. The difference to the first method is for people only.
COLUMNS = (
    Column("score", "Score", "after training, mean ± standard deviation (n−1) over seeds."),
    Column("difference", "Beside the first",  # prose: ok
        "the difference to the first row of its column, paired over seeds, with the 95 % "
        "interval of each comparison by itself (Student's t); none of a single seed, or of up "
        "to four that all differ by the same.", _with_interval),
    Column("bytes", "Bytes",
        "that the mean client sends and receives until training ends (1 kB = 1000 B).",
        average(lambda count: human_bytes(round(count)))),
    Column("clients_s", "Clients (s)",
        "seconds of computing of all clients, one after the other, without evaluation; mean "
        "over seeds. What several methods share counts in full for each.", average(_seconds)),
    Column("server_s", "Server (s)",
        "the same of the server: aggregation, logits, students, generated images.",
        average(_seconds)),
    Column("memory_bytes", "Memory (MiB)", "of all that must be held to predict (1 MiB = 2^20 B).",
        average(lambda size: f"{size / _MIB:.2f}")),
)  # fmt: skip

#: Further columns of files if any run has privacy, and their form for people.
PRIVATE = (Column("epsilon"), Column("example_epsilon"), Column("delta"))
_GUARANTEE = Column("guarantee", "ε", PRIVACY_LEGEND,
    lambda runs: show_guarantee(max(runs, key=_epsilon)) if runs else NOTHING)  # fmt: skip


def shown_costs(
    runs: Iterable[Row], rows: Sequence[str], columns: Sequence[str], metric: Metric
) -> TextTable:
    """Return a line for each method and each value of `columns`; each value is a block of lines.

    `runs` have a run's labelled settings and its costs. Each method is compared with the first of
    its block, paired over the seeds that both have.
    """
    axes = (*columns, *rows)
    first: dict[tuple[object, ...], Sequence[Row]] = {}
    blocks: dict[tuple[object, ...], list[tuple[list[str], Row]]] = {}
    for place, same in by_cell(runs, axes).items():
        block = place[: len(columns)]
        differences = _differences(same, first.setdefault(block, same))
        cells = known(same, COLUMNS) | {"difference": differences}
        cells["guarantee"] = [run for run in same if run.get("delta") is not None]
        blocks.setdefault(block, []).append(([*map(show_value, place)], cells))
    score, *others = COLUMNS
    if any(cells["guarantee"] for lines in blocks.values() for _, cells in lines):
        others.insert(1, _GUARANTEE)
    return text_table(
        axes,
        [line for lines in blocks.values() for line in lines],
        [replace(score, head=head_of(metric)), *others],
    )


def _epsilon(run: Row) -> float:
    """Return the epsilon of a run, of clients or of samples."""
    found = [run.get(name) for name in ("epsilon", "example_epsilon")]
    return max(float(value) for value in found if value is not None)


def _differences(same: Sequence[Row], first: Sequence[Row]) -> list[float]:
    if same is first:
        return []
    scores = {run[SEED]: run["score"] for run in first}
    return [run["score"] - scores[run[SEED]] for run in same if run[SEED] in scores]
