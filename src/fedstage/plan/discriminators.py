"""Clients' discriminators and their odds on public images (FedGO), made once before round 1."""

from typing import Any

from fedstage.plan import data_files
from fedstage.plan.data_files import info, partition_name, short
from fedstage.plan.graph import Folder, Stage
from fedstage.plan.inputs import ClientDiscriminatorInputs, ClientOddsInputs, PublicGeneratorInputs
from fedstage.plan.training_folder import public_file
from fedstage.settings.ensembles import Odds
from fedstage.settings.recipes import Recipe

#: Settings of numerics for stages that have no compiled code and store no logits.
PLAIN = tuple(f"numerics.{name}" for name in ("device", "threads", "precision", "memory_format"))


def weighs_by_odds(recipe: Recipe) -> bool:
    """Whether clients' votes are weighted by the odds of their discriminators."""
    return isinstance(recipe.ensemble, Odds) and recipe.global_trainer is not None


def _label(config: Any) -> str:
    return f"{short(config.data)}-{partition_name(config)}-odds-seed{config.seed}"


#: Neither the clients' training in rounds nor the server's use of votes affects these files.
FOLDER = Folder(
    "discriminators", Recipe, _label,
    lambda config: (
        "data", "clients", "partition", "validation", "core", "public", "seed",
        "ensemble.generator", "ensemble.discriminator", *PLAIN,
    ),
)  # fmt: skip


def _public_generator(recipe: Recipe) -> PublicGeneratorInputs[str]:
    """Return what the server trains its generator on."""
    return PublicGeneratorInputs(public_file(recipe), info(recipe))


PUBLIC_GENERATOR = Stage(
    name="public_generator",
    about="train the server's generator on public images",
    folder=FOLDER,
    outputs={"output": "generator.safetensors", "picture": "images.png"},
    inputs=_public_generator,
)


def _client_discriminator(recipe: Recipe, client: int) -> ClientDiscriminatorInputs[str]:
    """Return what a client's discriminator is trained on."""
    return ClientDiscriminatorInputs(
        **data_files.clients_samples(recipe), generator=PUBLIC_GENERATOR(recipe)
    )


CLIENT_DISCRIMINATOR = Stage(
    name="client_discriminator",
    about="train a client to tell its images from the generator's",
    folder=FOLDER,
    outputs={"output": "client_{client}.safetensors"},
    inputs=_client_discriminator,
)


def _client_odds(recipe: Recipe) -> ClientOddsInputs[str]:
    """Return what the odds of all clients are computed from."""
    made: list[str] = [CLIENT_DISCRIMINATOR(recipe, client) for client in range(recipe.clients)]
    return ClientOddsInputs(made, public_file(recipe), info(recipe))


CLIENT_ODDS = Stage(
    name="client_odds",
    about="compute the odds that public images are each client's",
    folder=FOLDER,
    outputs={"output": "odds.safetensors"},
    inputs=_client_odds,
)


def odds_files(recipe: Recipe) -> list[str]:
    """Return the odds of all clients on the public images, if votes are weighted by them."""
    return [CLIENT_ODDS(recipe)] if weighs_by_odds(recipe) else []
