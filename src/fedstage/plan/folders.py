"""The folders of a run, whose names are made by `graph.folder_of` and `training_folder`."""

from collections.abc import Iterable
from typing import Any

from fedstage.plan.data_files import AnyRecipe
from fedstage.plan.graph import behind
from fedstage.plan.scores import metrics_file
from fedstage.plan.taught import first_distillation
from fedstage.plan.training import global_model
from fedstage.settings.recipes import Recipe
from fedstage.settings.runs import RunLength


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
    jobs = behind(scored(recipe))
    return {job.folder: job.config for job in jobs if job.stage.folder.recipe}


def settings_of_folders(runs: Iterable[AnyRecipe]) -> dict[str, Any]:
    """Return the settings of all folders that runs depend on, by their paths."""
    files = (file for recipe in dict.fromkeys(runs) for file in scored(recipe))
    return {job.folder: job.config for job in behind(files)}
