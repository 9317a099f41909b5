"""Runs: a recipe, the length of its training, its evaluation and its folders."""

from collections import ChainMap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from fedstage.plan import unfederated
from fedstage.plan.data_files import AnyRecipe, partition
from fedstage.plan.graph import File, Stage, behind, files_in, listed
from fedstage.plan.one_shot_sharing import local_recipe
from fedstage.plan.scores import metrics_file
from fedstage.plan.source import Source, source_of, source_of_job
from fedstage.plan.stages import GRAPH
from fedstage.plan.training import global_model, local_training, member_logits
from fedstage.protocol.groups import client_groups, group_participants
from fedstage.protocol.rounds import first_distillation
from fedstage.settings.ensembles import GlobalModel
from fedstage.settings.experiments import Style
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.settings.recipes import Recipe
from fedstage.settings.runs import RunLength
from fedstage.settings.scores import Axis, Role


@dataclass(frozen=True)
class Run:
    """One point of an experiment's grid.

    A run that chooses has `candidates`, whose axes are the values to choose among; its recipe is
    the first candidate's. They are `compared` on validation samples, perhaps with other settings.
    The recipe starts from the final model of the run `before`, which is not evaluated.
    """

    axes: dict[str, Axis]  # of the grid, and always `method` and `seed`
    recipe: AnyRecipe
    length: RunLength
    candidates: tuple["Run", ...] = ()
    compared: tuple["Run", ...] = ()
    before: "Run | None" = None
    style: Style = field(default_factory=Style)  # how results show its method

    def evaluated(self) -> list["Run"]:
        """Return the runs whose metrics are read: itself, or each candidate in both roles."""
        if not self.candidates:
            return [self]
        return [*self.compared, *(run for run in self.candidates if run not in self.compared)]

    def trained(self) -> list["Run"]:
        """Return the runs whose recipes are trained: the evaluated runs, and their starts."""
        return [part for run in self.evaluated() for part in run.chain()]

    def chain(self) -> list["Run"]:
        """Return the runs that start from one another, ending in this one."""
        return [*(self.before.chain() if self.before else ()), self]

    def in_role(self, role: Role) -> "Run":
        """Return the run, scored on other samples."""
        return replace(self, length=self.length.model_copy(update={"role": role}))

    def with_seed(self, seed: int) -> "Run":
        """Return the run with another seed, which must be a valid one."""
        recipe = self.recipe.model_copy(update={"seed": seed})
        return replace(self, recipe=recipe, axes={**self.axes, "seed": seed})


def split_target(target: str) -> tuple[str, str]:
    """Read a target such as ``quickstart`` or ``fedsdd_table2/mini``; the scale is `default`."""
    name, _, scale = target.partition("/")
    return name, scale or "default"


def scored(recipe: AnyRecipe) -> list[str]:
    """Return files of a run's first rounds, or scores, that depend on files in all its folders.

    After the first distillation, no later file of rounds lies in another folder.
    """
    if not isinstance(recipe, Recipe):
        return [metrics_file(recipe, RunLength(rounds=1))]
    last = first_distillation(recipe) or 1
    models = [global_model(recipe, last, group) for group in range(recipe.global_models)]
    return [metrics_file(recipe, RunLength(rounds=last, evaluate_every=last)), *models]


def main_folder(recipe: AnyRecipe) -> str:
    """Return the folder of a run's models and metrics."""
    return "/".join(scored(recipe)[0].split("/")[:3])


def folders_of(recipe: AnyRecipe) -> dict[str, AnyRecipe]:
    """Return the settings of each folder with models of a run, or with files behind them.

    These are settings of training, clients, aggregators, students, and of what is generated.
    """
    every = settings_of_folders([recipe])
    return {path: config for path, config in every.items() if isinstance(config, AnyRecipe)}


def settings_of_folders(runs: Iterable[AnyRecipe]) -> dict[str, Any]:
    """Return the settings of all folders that runs depend on, by their paths."""
    files = (file for recipe in dict.fromkeys(runs) for file in scored(recipe))
    return {job.folder: job.config for job in behind(files)}


def sources_of(run: Run) -> set[Source]:
    """Return the source of all stages that may make files of a run, whatever is measured of it."""
    recipe, length = run.recipe, run.length
    short = (first_distillation(recipe) or 1) if isinstance(recipe, Recipe) else length.rounds
    size = {"rounds": short, "evaluate_every": short}
    files = [*scored(recipe), metrics_file(recipe, length.model_copy(update=size))]
    jobs = behind(files)
    folders = {(job.stage.folder, job.config) for job in jobs}
    others = (
        source_of(config, stage.name)
        for folder, config in folders
        for stage in GRAPH
        if stage.folder == folder and stage.used(config)
    )
    return {*map(source_of_job, jobs), *others}


# --- what the server sees of single clients -------------------------------------------------------
#
# What the server sees of single clients, according to the edges of the graph.
#
# A client's files are private until a job of the server reads one. With secure aggregation the
# server reads only messages, which reveal nothing but their sum.


class Exposed(NamedTuple):
    """A file of a single client, and the stage of the server that reads it."""

    stage: str
    file: str


def exposed(files: Iterable[str], but: Stage | None = None) -> Exposed | None:
    """Return the first file of a single client that the server reads behind `files`, if any.

    What the stage `but` reads does not count.
    """
    for job in behind(files):
        if job.stage.private is None and job.stage is not but:
            for seen in filter(_tells, files_in(job.inputs)):
                return Exposed(job.stage.name, seen)
    return None


def _tells(file: File) -> bool:
    """Whether a file is of a single client, or has the label counts of all."""
    histogram = file.job.stage is partition and file.output == "histogram"
    return histogram or bool(file.job.stage.private)


def predicting(recipe: Recipe | OneShotRecipe, length: RunLength) -> list[str]:
    """Return the files that a run predicts with, which its evaluation reads, and global models.

    Rounds count up to the second distilled one, since the jobs behind later rounds are alike.
    """
    if isinstance(recipe, OneShotRecipe):
        read = metrics_file(recipe, length).job.inputs
        return [file for name in ("aggregator", "student") for file in listed(read[name])]
    last = min(length.rounds, first_distillation(recipe) + 1)
    models = [global_model(recipe, last, group) for group in range(recipe.global_models)]
    if isinstance(length.evaluate, GlobalModel):
        return models
    return [*models, *member_logits(recipe, last, length.evaluate, length.role)]


# --- sharing --------------------------------------------------------------------------------------


def trainings(recipe: AnyRecipe, rounds: int) -> dict[str, int]:
    """Return the number of the clients' trainings behind a run, by the file of the first of each.

    The participants of a group in a round are shared by the same runs.
    """
    if not isinstance(recipe, Recipe):
        alone = local_recipe(recipe) if isinstance(recipe, OneShotRecipe) else recipe
        return dict.fromkeys(map(str, unfederated.local_models(alone)), 1)
    together = {group: group_participants(recipe, group) for group in client_groups(recipe)}
    return {
        str(local_training(recipe, round_, group, who[0])): len(who)
        for group, who in together.items()
        for round_ in range(1, rounds + 1)
    }


def describe_sharing(runs: Sequence[Sequence[tuple[AnyRecipe, int]]], methods: int) -> str:
    """Write what sharing saves, ``640 trainings for 5 methods; apart they would be 1,040``.

    Empty if it saves nothing. A run is the recipes of its parts, and how many rounds each has.
    """
    each = [dict(ChainMap(*(trainings(*part) for part in parts))) for parts in runs]
    made, apart = sum(ChainMap(*each).values()), sum(sum(of.values()) for of in each)
    if made == apart:
        return ""
    return f"{made:,} trainings for {methods} methods; apart they would be {apart:,}"


def shared_work(runs: Sequence[Run]) -> str:
    """Write what sharing saves for the runs of an experiment, as `describe_sharing` does."""
    parts = [
        [(part.recipe, part.length.rounds) for tried in run.evaluated() for part in tried.chain()]
        for run in runs
    ]
    return describe_sharing(parts, len({str(run.axes["method"]) for run in runs}))
