"""The files behind communication: tables of traffic, models that travel, and predictors.

No torch here: the Snakefile reads this.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import product

from fedstage.plan import one_shot, training_folder, unfederated
from fedstage.plan.data_files import AnyRecipe, data_file
from fedstage.plan.members import member_kinds, parse_sampled
from fedstage.plan.one_shot_sharing import local_recipe
from fedstage.plan.scores import participants_tables
from fedstage.plan.training import aggregated_model, global_model
from fedstage.protocol.groups import client_groups, group_participants
from fedstage.protocol.one_shot import members
from fedstage.protocol.rounds import member_rounds
from fedstage.protocol.teaching import generates
from fedstage.settings.ensembles import EachClient, Evaluated, GlobalModel, OwnModels, SplitModel
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.settings.recipes import LocalRecipe, Recipe
from fedstage.settings.runs import RunLength

#: Maps a round and group to the number of its participants that are not empty.
Filled = Callable[[int, int], int]


def traffic_files(recipe: AnyRecipe, rounds: int) -> list[str]:
    """Return the tables of the training's traffic: one per round and group, or one in all."""
    if isinstance(recipe, OneShotRecipe):
        return list(one_shot.traffic_tables(recipe))
    if isinstance(recipe, LocalRecipe):
        return []
    return participants_tables(recipe, range(1, rounds + 1))


def before_rounds(recipe: Recipe) -> list[str]:
    """Return what each client receives, and what it sends, before the rounds, if anything."""
    if not training_folder.weighs_by_odds(recipe):
        return []
    return [
        training_folder.public_generator(recipe),
        training_folder.client_discriminator(recipe, 0),
    ]


def client_models(recipe: AnyRecipe, length: RunLength) -> list[str]:
    """Return the models that travel in one round; the largest is the unit of a round's cost.

    For clients that train alone, these are the trained models: all, or the one that is scored.
    """
    if isinstance(recipe, Recipe):
        groups = client_groups(recipe)
        return [aggregated_model(recipe, length.rounds, group) for group in groups]
    if isinstance(recipe, OneShotRecipe):
        return one_shot.travelling_models(recipe)
    return _of_scored(unfederated.local_models(recipe), length)


def held_files(
    recipe: AnyRecipe,
    length: RunLength,
    filled: Filled | None = None,
    chosen: Sequence[int] | None = None,
) -> list[str]:
    """Return the files that prediction needs; a file is repeated for each model of its size.

    If each client predicts with its own model, these are all models: see `holds_one`. `filled` is
    the number of participants of a round and group that were not empty; by default none was.
    `chosen` are the clients whose models a one-shot ensemble has, by default all that it can have.
    """
    if isinstance(recipe, LocalRecipe):
        return _of_scored(unfederated.models_in_precision(recipe), length)
    if isinstance(recipe, Recipe):
        return list(_of_rounds(recipe, length.rounds, length.evaluate, filled))
    if recipe.distillation is not None:
        return [one_shot.student_file(recipe)]
    models = unfederated.models_in_precision(local_recipe(recipe))
    held = members(recipe) if chosen is None else chosen
    return [*(models[client] for client in held), one_shot.aggregator(recipe)]


def holds_one(recipe: AnyRecipe, length: RunLength) -> bool:
    """Whether a client predicts with only one of the files."""
    return isinstance(recipe, LocalRecipe) or isinstance(length.evaluate, EachClient | OwnModels)


def _of_scored(models: Sequence[str], length: RunLength) -> list[str]:
    """Return the models of the scored clients, which are all or one."""
    client = length.evaluate_client
    return [*models] if client is None else [models[client]]


def _of_rounds(
    recipe: Recipe, rounds: int, evaluated: Evaluated, filled: Filled | None
) -> Iterator[str]:
    """Yield the main model, or a model of equal size for each member of an ensemble."""
    if isinstance(evaluated, GlobalModel):
        yield global_model(recipe, rounds, 0)
        return
    if isinstance(evaluated, SplitModel):  # each client's prediction needs two parts
        first = client_groups(recipe).start
        yield from (global_model(recipe, rounds, group) for group in (0, first))
        return
    places = product(member_rounds(rounds, evaluated), client_groups(recipe))
    for (round_, group), kind in product(places, member_kinds(evaluated)):
        drawn = parse_sampled(kind)
        participants = filled(round_, group) if filled else len(group_participants(recipe, group))
        clients = participants if kind == "clients" else 1
        for _ in range(drawn.samples if drawn else clients):
            yield aggregated_model(recipe, round_, group)


def read_files(recipe: AnyRecipe, length: RunLength) -> list[str]:
    """Return all these files of a recipe, each once."""
    tables = traffic_files(recipe, length.rounds)
    files = [*tables, *client_models(recipe, length), *held_files(recipe, length)]
    if isinstance(recipe, Recipe):
        files += before_rounds(recipe)
    if isinstance(recipe, Recipe) and generates(recipe):
        files.append(data_file(recipe.data, "info"))  # whose classes clients count
    return list(dict.fromkeys(files))
