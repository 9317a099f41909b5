"""What one-shot runs share: configurations of clients that train to the end, and folders.

A folder declares the settings that reach all of its files.
"""

from functools import cache
from typing import Any

from fedstage.plan.data_files import common_name, initial_weights, samples_name
from fedstage.plan.graph import Folder, interned
from fedstage.plan.training_folder import PLAIN
from fedstage.settings.equivalences import IN_ONE_TRAINING, left_out, simplest
from fedstage.settings.generators import OfClients
from fedstage.settings.one_shot import OneShot, OneShotRecipe
from fedstage.settings.optimisation import Client
from fedstage.settings.recipes import LocalRecipe, Recipe

#: Fields of local recipes that federated recipes lack, or that have another meaning there.
_OF_CLIENTS = (
    "aggregator_fraction", "initialisation", "architectures", "quantisation", "pooled", "on_core",
    "unknown", "prototypes",
)  # fmt: skip


def alone(
    recipe: Recipe,
    rounds: int,
    *,
    pooled: bool = False,
    on_core: bool = False,
    own: OneShot | None = None,
) -> LocalRecipe:
    """Return the unfederated counterpart of a recipe: with all local epochs (steps) of `rounds`.

    The schedule of a round stretches over the whole length; `round_decay` and `batches` do not
    apply. Clients that train alone have their `own` samples, starts and quantisation.
    """
    client = recipe.client
    length: dict[str, Any] = dict(IN_ONE_TRAINING)
    for unit in ("epochs", "steps"):
        if (count := getattr(client, unit)) is not None:
            length[unit] = count * rounds
    shared = {
        name: getattr(recipe, name) for name in LocalRecipe.model_fields if name not in _OF_CLIENTS
    }
    shared["client"] = Client.model_validate(client.model_dump() | length)
    if own is not None and not (pooled or on_core):
        shared["aggregator_fraction"] = left_out(own)
        shared["initialisation"] = own.initialisation
        shared["quantisation"] = own.quantisation
        shared["unknown"], shared["prototypes"] = own.unknown, own.prototypes
    return LocalRecipe.model_construct(**shared, pooled=pooled, on_core=on_core)


@cache
def local_recipe(recipe: OneShotRecipe) -> LocalRecipe:
    """Return the recipe of a one-shot recipe's client models, whichever aggregator reads them.

    Clients that train on all their samples share models with a recipe without aggregator samples.
    """
    simple = simplest(recipe)
    names = LocalRecipe.model_fields.keys() - {"pooled", "on_core"}
    own = {name: value for name, value in simple.__dict__.items() if name in names}
    return interned(LocalRecipe.model_construct(**own))


# --- folders --------------------------------------------------------------------------------------

#: Settings that decide which samples each client has, and which of them train its model.
SAMPLES = (
    "data", "clients", "partition", "validation", "aggregator_fraction", "core", "seed",
)  # fmt: skip

#: Settings that decide the clients' models.
MODELS = (*LocalRecipe.model_fields.keys() - {"pooled", "on_core", "quantisation"},)


def _without(config: Any) -> str:
    """Return the mark of forgotten clients, listed as long as the folder's name stays short."""
    forgotten = config.forget
    if not forgotten:
        return ""
    listed = "_".join(map(str, forgotten))
    return f"-without_{listed if len(forgotten) <= 5 else f'{len(forgotten)}_clients'}"


def _label(config: Any, method: str) -> str:
    name = common_name(config, getattr(config, "model", config.student))
    method += f"-{config.quantisation.name}" if config.quantisation.name != "none" else ""
    return f"{name}-{method}{_without(config)}-seed{config.seed}"


def _label_of_student(config: Any) -> str:
    how = config.distillation
    before = f"{config.aggregator.name}-" if how.teacher == "ensemble" else ""
    return _label(config, f"{before}{how.name}")


def _label_of_images(config: Any) -> str:
    name = f"{samples_name(config)}-{config.generator.name}"
    return f"{name}{_without(config)}-seed{config.seed}"


def _label_of_moments(config: Any) -> str:
    return f"{samples_name(config)}-{config.student.name}-moments-seed{config.seed}"


AGGREGATORS = Folder(
    "aggregators", OneShotRecipe, lambda config: _label(config, config.aggregator.name),
    lambda config: (
        *MODELS, "quantisation", "aggregator", "aggregator_training", "members", "forget",
    ),
)  # fmt: skip
STUDENTS = Folder(
    "distilled_models", OneShotRecipe, _label_of_student,
    lambda config: (*SAMPLES, "numerics", "distillation", "student"),
)  # fmt: skip
MOMENTS = Folder(
    "moments", OneShotRecipe, _label_of_moments,
    lambda config: (*SAMPLES, *PLAIN, "student", *start_setting(config)),
)  # fmt: skip
GENERATORS = Folder(
    "generators", OneShotRecipe, _label_of_images,
    lambda config: (*SAMPLES, *PLAIN, *_of_training(config.generator)),
)  # fmt: skip
GENERATED = Folder(
    "generated", OneShotRecipe, _label_of_images,
    lambda config: (*SAMPLES, *PLAIN, "generator", "forget"),
)  # fmt: skip
SYNTHESISED = Folder(
    "synthesised", OneShotRecipe, _label_of_images,
    lambda config: (*MODELS, "student", "server", "generator", "forget"),
)  # fmt: skip


def _of_training(generator: OfClients) -> list[str]:
    """Return the settings of a generator that its clients read."""
    fields = type(generator).model_fields.keys() - set(generator.of_sampling)
    return [f"generator.{name}" for name in fields]


def start_setting(config: Any) -> tuple[str, ...]:
    """Return the setting of the clients' start, if a student starts from it."""
    return ("start",) if _starts_from_start(config) else ()


def _starts_from_start(config: Any) -> bool:
    """Whether a student starts as the clients do: their start is of its architecture."""
    return config.start is not None and config.student in (None, _first_model(config))


def _first_model(config: Any) -> Any:
    return local_recipe(config).model if hasattr(config, "model") else config.student


def student_start(recipe: OneShotRecipe) -> str:
    """Return the weights that a student starts from: the clients', or an initial model."""
    student = recipe.student or recipe.model
    if recipe.start is not None and student == _first_model(recipe):
        return recipe.start
    return initial_weights(recipe.data, student, recipe.seed, group=0)
