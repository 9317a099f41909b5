"""The disk space that runs will take, reported before they start."""

from collections.abc import Collection, Iterable, Iterator

from fedstage.experiments.catalogue import Catalogue
from fedstage.experiments.descriptions import files_of_rounds
from fedstage.models.size import state_size
from fedstage.plan import one_shot, unfederated
from fedstage.plan.graph import behind
from fedstage.plan.one_shot_sharing import client_model
from fedstage.plan.participants import groups_drawn
from fedstage.plan.runs import Run
from fedstage.plan.segment_files import files_read, inputs
from fedstage.plan.segments import plan
from fedstage.plan.training import aggregated_model, global_model, updates
from fedstage.settings.config_file import Keep
from fedstage.settings.data import Data
from fedstage.settings.groups import model_of
from fedstage.settings.models import Model
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.settings.recipes import LocalRecipe, Recipe

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
    if not isinstance(run.recipe, Recipe):
        yield from _without_rounds(run.recipe, run.length.evaluate_client)
        return
    for round_ in range(1, run.length.rounds + 1):
        for group in range(run.recipe.global_models):
            place = (run.recipe, round_, group)
            size = _model_size(run.recipe.data, model_of(run.recipe, group))
            # If groups are drawn, a participant is filled once in as many rounds as there are
            # groups.
            update = size * _update_parts(run.recipe) // (groups_drawn(run.recipe) or 1)
            if run.recipe.participation == "poisson":
                update = update * run.recipe.participants // run.recipe.clients
            models = (aggregated_model(*place), global_model(*place))
            trained = updates(*place)
            every = keep != "needed" or round_ == run.length.rounds
            yield from ((path, size) for path in models if every or path in read)
            yield from ((path, update) for path in trained if keep == "all" or path in read)


def _without_rounds(
    recipe: LocalRecipe | OneShotRecipe, client: int | None
) -> Iterator[tuple[str, int]]:
    """Yield the models of clients that train to the end (or only one), and of their student."""
    if isinstance(recipe, LocalRecipe):
        scored = unfederated.local_metrics_file(recipe, "test", 1, client)
    else:
        scored = one_shot.one_shot_metrics_file(recipe, "test")
        if recipe.distillation is not None:
            size = _model_size(recipe.data, recipe.student or recipe.model)
            yield one_shot.student_file(recipe), size
    for job in behind([scored]):
        if (parts := _PARTS.get(job.stage)) is not None:
            trained = client_model(job.config, unfederated.client_of(job.at["who"]) or 0)
            yield job.files["output"], _model_size(recipe.data, trained) // parts


def _update_parts(recipe: Recipe) -> int:
    """Return the size of an update in models: weights, control variates, residuals, masked."""
    residuals = recipe.compression.name == "stc" and recipe.compression.residuals
    sent = 1 + recipe.local.keeps_state
    return sent + residuals + (sent if recipe.aggregation.secure else 0)


def _model_size(data: Data, model: Model) -> int:
    shape, classes = data.known.shape, data.known.classes
    return 0 if shape is None or classes is None else state_size(model, shape, classes)


def _is_known(data: Data) -> bool:
    return data.known.shape is not None and data.known.classes is not None
