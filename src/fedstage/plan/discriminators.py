"""Clients' discriminators and their odds on public images (FedGO), made once before round 1."""

from functools import partial
from typing import Any

from fedstage.plan import data_files
from fedstage.plan.data_files import info, partition_name, short
from fedstage.plan.graph import Folder, Stage
from fedstage.plan.inputs import ClientDiscriminatorInputs, ClientOddsInputs, PublicInputs
from fedstage.plan.training_folder import public_file
from fedstage.settings.ensembles import Odds
from fedstage.settings.recipes import Recipe

#: Settings of numerics for stages that store no logits.
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


@partial(Stage, folder=FOLDER, outputs={"output": "generator.safetensors", "picture": "images.png"})
def public_generator(recipe: Recipe) -> PublicInputs[str]:
    """Train the server's generator on public images."""
    return PublicInputs(public_file(recipe), info(recipe))


@partial(Stage, folder=FOLDER, outputs={"output": "client_{client}.safetensors"})
def client_discriminator(recipe: Recipe, client: int) -> ClientDiscriminatorInputs[str]:
    """Train a client to tell its images from the generator's."""
    return ClientDiscriminatorInputs(
        **data_files.clients_samples(recipe), generator=public_generator(recipe)
    )


@partial(Stage, folder=FOLDER, outputs={"output": "odds.safetensors"})
def client_odds(recipe: Recipe) -> ClientOddsInputs[str]:
    """Compute the odds that public images are each client's."""
    made: list[str] = [client_discriminator(recipe, client) for client in range(recipe.clients)]
    return ClientOddsInputs(public_file(recipe), info(recipe), made)


def odds_files(recipe: Recipe) -> list[str]:
    """Return the odds of all clients on the public images, if votes are weighted by them."""
    return [client_odds(recipe)] if weighs_by_odds(recipe) else []
