"""All stages, and the jobs of rounds.

Stages are of the graph, of segments, which run several of them in one job, and of results.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, get_args

from fedstage.plan import (
    data_files,
    graph,
    one_shot,
    scores,
    training,
    training_folder,
    unfederated,
)
from fedstage.plan.data_files import AnyRecipe
from fedstage.plan.graph import Command, File, Stage, declared
from fedstage.plan.results import FILES, FOLDERS, description_file, result_files
from fedstage.plan.training import DISTILLATIONS, distillation, global_model, local_training, logits
from fedstage.settings.recipes import Recipe

#: The stages of a round.
OF_ROUNDS = declared(training)

#: The stages whose files depend on a configuration, in the order of the graph.
GRAPH: tuple[Stage, ...] = (
    *declared(data_files),
    *OF_ROUNDS,
    *declared(training_folder),
    *declared(scores),
    *declared(unfederated),
    *declared(one_shot),
    *one_shot.EVALUATIONS.values(),
)

#: The names of folders whose subfolders are named after settings, not after experiments.
OF_SETTINGS = {FOLDERS["choice"], *(stage.folder.name for stage in GRAPH)}
#: The names of folders of runs, and of what is behind them but data, partitions and weights.
RECIPES = tuple(
    dict.fromkeys(stage.folder.name for stage in GRAPH if stage.folder.kind in get_args(AnyRecipe))
)

SEGMENT = Command(name="segment", on_device=local_training.on_device)
LOGITS_SEGMENT = Command(name="logits_segment", module="segment", on_device=logits.on_device)
#: The stages that present an experiment at a scale.
RESULTS = tuple(
    Command(
        name=name,
        outputs=files,
        about_plan=name not in ("table", "figure"),
        module="report" if name == "figure" else name,
    )
    for name, files in FILES.items()
)

CHOICE = Command(name="choice", outputs={"output": "metrics.parquet", "chosen": "chosen.json"})

#: All stages by name.
STAGES: dict[str, Command] = {
    stage.name: stage for stage in (CHOICE, *GRAPH, SEGMENT, LOGITS_SEGMENT, *RESULTS)
}


def module_of(stage: str) -> str:
    """Return the name of the module that has the function of a stage."""
    return f"fedstage.stages.{STAGES[stage].module or stage}"


#: What a table shows, by the folder of its files; a figure; and what needs the file of costs.
TABLES = ("tables", "claims", "communication", "costs", "round_times", "retention", "clients")
FIGURES = (
    "accuracy", "partition", "published", "over", "differences", "ensembles",
    "communication", "costs", "retention",
)  # fmt: skip
_COSTLY = ("communication", "costs", "round_times")


def given_files(
    stage: str, described: Mapping[str, Any], shown: str = ""
) -> dict[str, str | list[str]]:
    """Return what a stage of results reads in addition to the runs' description, by its names.

    `described` has the runs of an experiment at a scale and its results; `shown` is what a table
    or figure shows.
    """
    at = {key: described[key] for key in ("experiment", "scale")}
    wanted, found = described.get("results", ()), dict[str, str | list[str]]()
    judges = described.get("judged") and (shown == "claims" or stage == "report")
    if judges or stage in ("properties", "report"):
        found["wanted"] = description_file("results").format(**at)
    sends = stage == "properties" and "communication" in wanted
    if sends or (stage in ("table", "figure", "report") and shown != "partition"):
        (found["scores"],) = result_files("scores", **at)
    costly = not {*_COSTLY}.isdisjoint(wanted) and (judges or stage == "report")
    if costly or (stage == "table" and shown in _COSTLY):
        (found["costs"],) = result_files("costs", **at)
    if judges:
        found["definitions"] = description_file("claims").format(**at)
    return found


# --- the jobs of a run's rounds, and which each waits for -----------------------------------------


@dataclass(frozen=True, order=True)
class Job:
    """The job of a stage in round t of group k, ordered by rounds, which makes `file`.

    All stages that make students are called ``distillation``.
    """

    round: int
    group: int
    stage: str
    file: str
    participant: int = 0  # that a local training trains


#: What each job waits for.
Edges = Mapping[Job, tuple[Job, ...]]


def _named(job: graph.Job) -> Job:
    file = next(iter(job.files.values()))
    name = distillation.name if job.stage in DISTILLATIONS else job.stage.name
    return Job(job.at["round"], job.at["group"], name, file, job.at.get("participant", 0))


def jobs_of(recipe: Recipe, last: int) -> dict[Job, tuple[Job, ...]]:
    """Return all jobs behind the global models after round `last`, with their edges."""
    models = (global_model(recipe, last, group) for group in range(recipe.global_models))
    found = walk(models, graph.always)
    return dict(sorted((_named(job), tuple(map(_named, of_rounds(job)))) for job in found))


def walk(files: Iterable[str], belongs: Callable[[graph.Job], bool]) -> list[graph.Job]:
    """Return the jobs of rounds that are behind files and `belong`, each after those behind it.

    Jobs behind one that does not belong are not searched.
    """
    own = (file for file in files if isinstance(file, File) and file.job.stage in OF_ROUNDS)
    return graph.behind(own, belongs, of_rounds)


@cache
def of_rounds(job: graph.Job) -> tuple[graph.Job, ...]:
    """Return the jobs of rounds whose files a job reads."""
    return tuple(before for before in job.before if before.stage in OF_ROUNDS)
