"""The settings that people look for first, from the resolved runs, with their defaults."""

from collections.abc import Iterator, Mapping, Sequence

from fedstage.plan.digests import canonical
from fedstage.results.runs_file import SEED, ExperimentRun, ExperimentRuns, Part
from fedstage.results.tables.labels import METHOD, show_value
from fedstage.settings.base import Choice
from fedstage.settings.merging import flatten
from fedstage.settings.models import Model
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.settings.optimisation import Client
from fedstage.settings.recipes import LocalRecipe, Recipe


def main_settings(experiment: ExperimentRuns) -> dict[str, str]:
    """Return rounds, clients, participants, local training, model, partition and seeds.

    If runs differ, each value is listed with its methods, unless it also varies within a method.
    """
    found: dict[str, dict[str, list[str]]] = {}  # setting -> value -> methods
    for run in experiment.runs:
        method = str(run.settings.get(METHOD, ""))
        for name, value in _settings(run):
            methods = found.setdefault(name, {}).setdefault(value, [])
            methods.append(experiment.labels.get(method, method))
    told = {name: _told(values) for name, values in found.items()}
    seeds = dict.fromkeys(str(run.settings[SEED]) for run in experiment.runs)
    return told | {"seeds": ", ".join(seeds)}


def _settings(run: ExperimentRun) -> Iterator[tuple[str, str]]:
    """Yield a run's settings and their values, without settings that its kind of run lacks."""
    parts = run.candidates[run.which()].parts
    recipe = parts[-1].recipe
    if rounds := " + ".join(str(part.length.rounds) for part in parts if _has_rounds(part)):
        yield "rounds", rounds
    yield "clients", str(recipe.clients)
    if isinstance(recipe, Recipe):
        yield "participants of a round", str(recipe.participants)
    yield "local training", _duration(recipe.client)
    yield "batch size", str(recipe.client.batch_size)
    yield "learning rate", show_value(recipe.client.learning_rate)
    yield "model", " and ".join(dict.fromkeys(map(_choice, _models(recipe))))
    yield "data", _choice(recipe.data)
    yield "partition", _choice(recipe.partition)


def _told(values: Mapping[str, Sequence[str]]) -> str:
    if len(values) == 1:
        return next(iter(values))
    methods = {value: list(dict.fromkeys(names)) for value, names in values.items()}
    every = [name for names in methods.values() for name in names]
    if len(every) > len(set(every)):
        return ", ".join(methods)
    return ", ".join(f"{value} ({', '.join(names)})" for value, names in methods.items())


def _has_rounds(part: Part) -> bool:
    return not isinstance(part.recipe, LocalRecipe)


def _duration(client: Client) -> str:
    unit, count = ("step", client.steps) if client.epochs is None else ("epoch", client.epochs)
    return f"{count} {unit}" if count == 1 else f"{count} {unit}s"


def _models(recipe: Recipe | OneShotRecipe | LocalRecipe) -> list[Model]:
    """Return the main model, and the models of groups or clients."""
    return [recipe.model, *recipe.architectures]


def _choice(chosen: Choice) -> str:
    """Write a choice with its settings, without defaults: ``dirichlet alpha 0.1``."""
    settings = flatten(canonical(chosen))
    name = settings.pop("name")
    words = (key if value == "{}" else f"{key} {value}" for key, value in settings.items())
    return " ".join([name, *words])
