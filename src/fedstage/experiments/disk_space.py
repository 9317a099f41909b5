"""The disk space that runs will take, reported before they start."""

from collections.abc import Collection, Iterable, Iterator

from fedstage.experiments.catalogue import Catalogue
from fedstage.experiments.descriptions import files_of_rounds
from fedstage.models.size import state_size
from fedstage.plan import one_shot, unfederated
from fedstage.plan.graph import behind
from fedstage.plan.jobs import OF_ROUNDS
from fedstage.plan.one_shot_sharing import client_model
from fedstage.plan.participants import groups_drawn
from fedstage.plan.runs import Run
from fedstage.plan.scores import metrics_file
from fedstage.plan.segment_files import files_read, inputs, kind_of
from fedstage.plan.segments import plan
from fedstage.plan.training import local_training
from fedstage.settings.config_file import Keep
from fedstage.settings.data import Data
from fedstage.settings.groups import model_of
from fedstage.settings.models import Model
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.settings.recipes import Recipe

#: Stages of clients' models, with the share of float32 that a parameter takes: a quarter for 8
#: bits, neglecting parameters that are not quantised.
_PARTS = {unfederated.local_model: 1, unfederated.quantised_model: 4}


def describe_size(catalogue: Catalogue, trained: Iterable[Run]) -> str:
    """Return one line about the disk space of all models and updates of runs, once complete."""
    runs = [part for run in trained for part in run.chain()]
    keep = catalogue.config.keep
    length = catalogue.config.execution.segment_rounds
    parts = [part for parts in plan(runs, length) for part in parts] if keep != "all" else []
    others = (inputs(part.jobs())[1] for part in parts)
    read = files_read(runs, others) | set(files_of_rounds(catalogue))
    sizes = dict(file for run in runs for file in _files(run, keep, read))
    kept = {"all": "with all", "models": "with some", "needed": "with some"}[keep]
    total = sum(sizes.values())
    note = f": {total / 1e9:.2f} GB in all" if total else ""
    if unknown := sorted({run.recipe.data.name for run in runs if not _is_known(run.recipe.data)}):
        note += f"; size unknown for shapes that only the data determine ({', '.join(unknown)})"
    if models := sorted(_models_without_size(runs)):
        note += f", without models whose size is not known ({', '.join(models)})"
    return f"{len(sizes)} models, {kept} participants' updates{note}"


def _models_without_size(runs: Iterable[Run]) -> set[str]:
    """Return the names of models whose size is unknown although the size of their data is known."""
    recipes = {run.recipe for run in runs if _is_known(run.recipe.data)}
    pairs = {
        (recipe.data, model)
        for recipe in recipes
        for model in (recipe.model, *recipe.architectures)
    }
    return {model.name for data, model in pairs if not _model_size(data, model)}


def _files(run: Run, keep: Keep, read: Collection[str]) -> Iterator[tuple[str, int]]:
    """Yield the models and updates behind a run's metrics that stay, with their sizes."""
    recipe, last = run.recipe, run.length.rounds
    if isinstance(recipe, OneShotRecipe) and recipe.distillation is not None:
        student = recipe.student or recipe.model
        yield one_shot.student_file(recipe), _model_size(recipe.data, student)
    for job in behind([metrics_file(recipe, run.length)]):
        file = next(iter(job.files.values()))
        if parts := _PARTS.get(job.stage):
            trained = client_model(job.config, unfederated.client_of(job.at["who"]) or 0)
            yield file, _model_size(recipe.data, trained) // parts
        elif isinstance(recipe, Recipe) and job.stage in OF_ROUNDS:
            size = _model_size(recipe.data, model_of(recipe, job.at["group"]))
            if job.stage is local_training and (keep == "all" or file in read):
                yield file, _update_size(recipe, size)
            every = keep != "needed" or job.at["round"] == last or file in read
            if kind_of(file) == "models" and every:
                yield file, size


def _update_size(recipe: Recipe, model: int) -> int:
    """Return the mean size of an update: weights, control variates, residuals, masked."""
    residuals = recipe.compression.name == "stc"
    sent = 1 + recipe.local.keeps_state
    size = model * (sent + residuals + (sent if recipe.aggregation.secure else 0))
    # If groups are drawn, a participant is filled once in as many rounds as there are groups.
    size //= groups_drawn(recipe) or 1
    poisson = recipe.participation == "poisson"
    return size * recipe.participants // recipe.clients if poisson else size


def _model_size(data: Data, model: Model) -> int:
    shape, classes = data.known.shape, data.known.classes
    return 0 if shape is None or classes is None else state_size(model, shape, classes)


def _is_known(data: Data) -> bool:
    return data.known.shape is not None and data.known.classes is not None
