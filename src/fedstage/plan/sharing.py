"""What sharing saves: trainings that several methods of a seed have in common."""

from collections.abc import Sequence

from fedstage.plan import unfederated
from fedstage.plan.data_files import AnyRecipe
from fedstage.plan.jobs import jobs_of
from fedstage.plan.one_shot_sharing import local_recipe
from fedstage.plan.runs import Run
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.settings.recipes import Recipe


def trainings(recipe: AnyRecipe, rounds: int) -> set[str]:
    """Return the files of the clients' trainings behind a run."""
    if isinstance(recipe, Recipe):
        return {job.file for job in jobs_of(recipe, rounds) if job.stage == "local_training"}
    alone = local_recipe(recipe) if isinstance(recipe, OneShotRecipe) else recipe
    return set(unfederated.local_models(alone))


def describe_sharing(runs: Sequence[Sequence[tuple[AnyRecipe, int]]], methods: int) -> str:
    """Write what sharing saves, ``640 trainings for 5 methods; apart they would be 1,040``.

    Empty if it saves nothing. A run is the recipes of its parts, and how many rounds each has.
    """
    each = [set().union(*(trainings(*part) for part in parts)) for parts in runs]
    made, apart = len(set().union(*each)), sum(map(len, each))
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
