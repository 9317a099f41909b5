"""Unlearning a client: the files that still contain it after an aggregator has forgotten it.

Forgetting makes one new aggregator and trains no model. Earlier files stay in place until they are
deleted (`fedstage forget --delete`).
"""

from collections.abc import Collection, Iterator, Mapping
from fnmatch import fnmatchcase

from fedstage.experiments.catalogue import Catalogue, resolve_sound
from fedstage.experiments.library import experiment_names
from fedstage.experiments.traces import Forgotten, Trace, public_data
from fedstage.plan.data_files import AnyRecipe, division_of
from fedstage.plan.folders import main_folder
from fedstage.plan.results import RESULTS
from fedstage.plan.runs import Run
from fedstage.plan.stages import RECIPES
from fedstage.settings.one_shot import OneShotRecipe

#: Results that are made from metrics, models or partitions.
_PRESENTED = ("tables", "claims", "communication", "retention", "clients")


def forgets(catalogue: Catalogue, experiment: str, scale: str) -> bool:
    """Whether a run of an experiment forgets a client."""
    return any(_forgetful(catalogue, experiment, scale))


def traces_of(
    catalogue: Catalogue, experiment: str, scale: str, stored: Mapping[str, AnyRecipe] | None = None
) -> list[dict[str, str | int]]:
    """Return the traces, for JSON, of all clients that runs of an experiment forget.

    Traces may be in files of any experiment, and of recipes that the configuration no longer has.
    The latter are `stored` by the paths of their folders.
    """
    names = experiment_names(catalogue.config, catalogue.folder)
    every = resolve_sound(catalogue.config, catalogue.folder, names, [experiment])
    recipes = dict(sorted({**(stored or {}), **_of_recipes(every)}.items()))
    traces = [
        (client, *trace)
        for recipe in _forgetful(catalogue, experiment, scale)
        for client in sorted(set(recipe.forget))
        for trace in _traces(every, recipes, Forgotten(client, division_of(recipe)))
    ]
    keys = ("client", "contains", "files")
    return [dict(zip(keys, trace, strict=True)) for trace in dict.fromkeys(traces)]


def _of_recipes(catalogue: Catalogue) -> dict[str, AnyRecipe]:
    """Return the recipes of folders in which a file has them, by the folders' paths."""
    folders = tuple(f"{RESULTS}/{name}/" for name in RECIPES)
    return {
        path: recipe
        for path, recipe in catalogue.folders.items()
        if path.startswith(folders) and path.count("/") == 2
    }


def _forgetful(catalogue: Catalogue, experiment: str, scale: str) -> list[OneShotRecipe]:
    recipes = (part.recipe for run in catalogue.runs[experiment, scale] for part in run.trained())
    return [recipe for recipe in recipes if isinstance(recipe, OneShotRecipe) and recipe.forget]


def _traces(catalogue: Catalogue, recipes: Mapping[str, AnyRecipe], gone: Forgotten) -> list[Trace]:
    read = (
        data for recipe in recipes.values() for data in (recipe.data, public_data(recipe)) if data
    )
    traces = [
        *(trace for data in dict.fromkeys(read) for trace in gone.in_data(data)),
        *(trace for path, recipe in recipes.items() for trace in gone.in_folder(path, recipe)),
    ]
    while later := [trace for trace in _started(recipes, traces) if trace not in traces]:
        traces += later
    return [*traces, *_presented(catalogue, gone, traces)]


def _started(recipes: Mapping[str, AnyRecipe], traces: Collection[Trace]) -> Iterator[Trace]:
    """Yield the recipes that start from a file with traces."""
    for path, recipe in recipes.items():
        start = recipe.start
        if start is not None and any(is_among(start, files) for _, files in traces):
            yield "goes on from a model with it", path


def is_among(file: str, files: str) -> bool:
    """Whether a file matches a pattern, or lies in the folder of that name."""
    return fnmatchcase(file, files) or file.startswith(f"{files}/")


def _presented(catalogue: Catalogue, gone: Forgotten, traces: Collection[Trace]) -> Iterator[Trace]:
    """Yield the results and choices of runs that have files with traces."""
    contains, folders = "numbers of runs with it", {files for _, files in traces}

    def touched(run: Run) -> bool:
        recipes = (part.recipe for part in run.trained())
        return any(
            gone.has(recipe) is not None or main_folder(recipe) in folders for recipe in recipes
        )

    for (experiment, scale), runs in sorted(catalogue.runs.items()):
        if any(map(touched, runs)):
            files = [f"{RESULTS}/{kind}/{experiment}/{scale}.*" for kind in _PRESENTED]
            for pattern in (*files, f"{RESULTS}/figures/{experiment}/{scale}_*"):
                yield contains, pattern
    for name, run in sorted(catalogue.choices.items()):
        if touched(run):
            yield contains, f"{RESULTS}/choices/{name}"
