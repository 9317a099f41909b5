"""What sharing saves: trainings that several methods of a seed have in common."""

from collections import ChainMap
from collections.abc import Sequence

from fedstage.plan import unfederated
from fedstage.plan.data_files import AnyRecipe
from fedstage.plan.one_shot_sharing import local_recipe
from fedstage.plan.runs import Run
from fedstage.plan.training import local_training
from fedstage.protocol.groups import client_groups, group_participants
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.settings.recipes import Recipe


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
