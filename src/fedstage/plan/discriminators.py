"""Clients' discriminators and their odds on public images (FedGO), made once before round 1."""

from typing import Any

from fedstage.plan import data_files
from fedstage.plan.graph import File, Files, Folder, Stage
from fedstage.plan.identity import partition_name, short
from fedstage.plan.training_folder import public_file
from fedstage.settings.ensembles import Odds
from fedstage.settings.lines import Line

#: Settings of numerics for stages that have no compiled code and store no logits.
PLAIN = tuple(f"numerics.{name}" for name in ("device", "threads", "precision", "memory_format"))


def weighs_by_odds(line: Line) -> bool:
    """Whether clients' votes are weighted by the odds of their discriminators."""
    return isinstance(line.ensemble, Odds) and line.global_trainer is not None


def _label(config: Any) -> str:
    return f"{short(config.data)}-{partition_name(config)}-odds-seed{config.seed}"


#: What clients train in the rounds, and what the server does with their votes, does not reach them.
FOLDER = Folder(
    "discriminators", Line, _label,
    lambda config: (
        "data", "clients", "partition", "validation", "core", "public", "seed",
        "ensemble.generator", "ensemble.discriminator", *PLAIN,
    ),
)  # fmt: skip


def _info(config: Line) -> dict[str, str]:
    return {"info": data_files.data_file(config.data, "info")}


def _public_generator(config: Line) -> Files:
    """Return what the server trains its generator on."""
    return _info(config) | {"public": public_file(config)}


PUBLIC_GENERATOR = Stage(
    "public_generator",
    FOLDER,
    {"output": "generator.safetensors", "picture": "images.png"},
    _public_generator,
)


def _client_discriminator(config: Line, client: int) -> Files:
    """Return what a client tells apart: its own samples, and images of the generator."""
    return {
        **_info(config),
        "generator": PUBLIC_GENERATOR(config),
        "data": data_files.data_file(config.data, "train"),
        "clients": data_files.clients_table(config),
    }


CLIENT_DISCRIMINATOR = Stage(
    "client_discriminator",
    FOLDER,
    {"output": "client_{client}.safetensors"},
    _client_discriminator,
    place=("client",),
)


def discriminators(config: Line) -> list[File]:
    """Return the discriminators of all clients, in their order."""
    return [CLIENT_DISCRIMINATOR(config, client) for client in range(config.clients)]


def _client_odds(config: Line) -> Files:
    """Return what the odds of all clients on the public images are computed from."""
    public = public_file(config)
    return _info(config) | {"discriminators": discriminators(config), "public": public}


CLIENT_ODDS = Stage("client_odds", FOLDER, {"output": "odds.safetensors"}, _client_odds)


def odds_files(line: Line) -> list[str]:
    """Return the odds of all clients on the public images, if votes are weighted by them."""
    return [CLIENT_ODDS(line)] if weighs_by_odds(line) else []
