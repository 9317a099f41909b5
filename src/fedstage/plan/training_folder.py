"""Folders of rounds and of the discriminators before them: names, and the settings that reach.

Discriminators and their odds on public images (FedGO) are made once before round 1.
"""

from collections.abc import Iterable
from functools import cache, partial
from typing import Any

from fedstage.plan import data_files
from fedstage.plan.data_files import common_name, info, public_id, samples_name
from fedstage.plan.graph import Folder, Stage, folder_of, restricted
from fedstage.plan.inputs import ClientDiscriminatorInputs, ClientOddsInputs, PublicInputs
from fedstage.protocol.exchange import (
    exchanges_features,
    exchanges_logits,
    keeps_statistics,
    optimises,
)
from fedstage.protocol.teaching import re_estimates
from fedstage.settings.ensembles import Odds
from fedstage.settings.equivalences import OF_TEACHERS, simplest
from fedstage.settings.recipes import Recipe
from fedstage.settings.server import Server


@cache
def training_name(recipe: Recipe) -> str:
    """Return the readable beginning of the name of a folder of rounds."""
    aggregation, trainer = recipe.aggregation, recipe.global_trainer
    parts = (
        (recipe.local.name, True),
        ("local_bn", keeps_statistics(recipe)),
        ("personal", recipe.personal is not None),
        (recipe.compression.name, recipe.compression.name != "none"),
        (aggregation.rule.name, aggregation.rule.name != "average"),
        ("private", recipe.privacy is not None),
        (aggregation.server_optimizer.name, optimises(recipe)),
        (f"K{recipe.global_models}", recipe.global_models > 1),
        ("heads", recipe.head_sharing),
    )
    taught = [part.name for part in (trainer, recipe.generator) if trainer and part]
    method = "-".join([*(name for name, used in parts if used), *taught])
    return f"{common_name(recipe)}-{method}-seed{recipe.seed}"


#: Settings about teachers and students, and about heads that models share.
TEACHING = (
    "ensemble", "global_trainer", "distillation", "server", "public", "generator", "head_sharing",
)  # fmt: skip
_BASE = Recipe.model_fields.keys() - {*TEACHING}


def _of_all(recipe: Recipe) -> Iterable[str]:
    """Return the settings that reach all files of a run's rounds."""
    yield from _BASE
    if exchanges_logits(recipe):  # with which clients learn, too
        yield from ("ensemble", "distillation", "server", "public")
    elif re_estimates(recipe):
        yield "public"
    if exchanges_features(recipe):
        yield from (f"server.{name}" for name in Server.model_fields.keys() - set(OF_TEACHERS))


FOLDER = Folder("training", Recipe, training_name, _of_all)


def owners(recipe: Recipe) -> tuple[Recipe, Recipe]:
    """Return the owners of the files that a teacher or a head reaches, and of the others."""
    simple = simplest(recipe)
    of_all = frozenset(_of_all(simple))
    return restricted(simple, of_all.union(TEACHING)), restricted(simple, of_all)


def training_folder(recipe: Recipe) -> str:
    """Return the folder of a run: of its scores, and of all that a teacher or a head reaches."""
    return folder_of(FOLDER, owners(recipe)[0])


def training_id(recipe: Recipe) -> str:
    """Return the name of a run's folder."""
    return training_folder(recipe).rpartition("/")[2]


def teaching(recipe: Recipe, *place: Any) -> Iterable[str]:
    """Return the settings that stages that teach read, and so all files after them."""
    return TEACHING


def public_file(recipe: Recipe) -> str:
    """Return the public images."""
    return data_files.samples_file(recipe, public_id(recipe))


# --- discriminators -------------------------------------------------------------------------------

#: Settings of numerics for stages that store no logits.
PLAIN = tuple(f"numerics.{name}" for name in ("device", "threads", "precision", "memory_format"))


def weighs_by_odds(recipe: Recipe) -> bool:
    """Whether clients' votes are weighted by the odds of their discriminators."""
    return isinstance(recipe.ensemble, Odds) and recipe.global_trainer is not None


def _label_of_odds(config: Any) -> str:
    return f"{samples_name(config)}-odds-seed{config.seed}"


#: Neither the clients' training in rounds nor the server's use of votes affects these files.
DISCRIMINATORS = Folder(
    "discriminators", Recipe, _label_of_odds,
    lambda config: (
        "data", "clients", "partition", "validation", "core", "public", "seed",
        "ensemble.generator", "ensemble.discriminator", *PLAIN,
    ),
)  # fmt: skip
_of_odds = partial(Stage, folder=DISCRIMINATORS, module="generators")


@partial(_of_odds, outputs={"output": "generator.safetensors", "picture": "images.png"})
def public_generator(recipe: Recipe) -> PublicInputs[str]:
    """Train the server's generator on public images."""
    return PublicInputs(public_file(recipe), info(recipe))


@partial(_of_odds, outputs={"output": "client_{client}.safetensors"}, private=True)
def client_discriminator(recipe: Recipe, client: int) -> ClientDiscriminatorInputs[str]:
    """Train a client to tell its images from the generator's."""
    return ClientDiscriminatorInputs(
        **data_files.clients_samples(recipe), generator=public_generator(recipe)
    )


@partial(_of_odds, outputs={"output": "odds.safetensors"})
def client_odds(recipe: Recipe) -> ClientOddsInputs[str]:
    """Compute the odds that public images are each client's."""
    made: list[str] = [client_discriminator(recipe, client) for client in range(recipe.clients)]
    return ClientOddsInputs(public_file(recipe), info(recipe), made)


def odds_files(recipe: Recipe) -> list[str]:
    """Return the odds of all clients on the public images, if votes are weighted by them."""
    return [client_odds(recipe)] if weighs_by_odds(recipe) else []
