"""Images that are generated in one shot: by clients' generators, or against their models."""

from typing import Any

from fedstage.plan import data_files, one_shot_artefacts
from fedstage.plan.graph import File, Files, Stage
from fedstage.plan.one_shot_folders import GENERATED, GENERATORS, SYNTHESISED, student_start
from fedstage.plan.one_shot_sharing import local_line, members
from fedstage.settings.one_shot import OneShotLine


def _info(config: Any) -> dict[str, str]:
    return {"info": data_files.data_file(config.data, "info")}


def _client_generator(config: OneShotLine, client: int) -> Files:
    """Return what a client's generator is trained on."""
    return {
        **_info(config),
        "data": data_files.data_file(config.data, "train"),
        "clients": data_files.clients_table(local_line(config)),
    }


CLIENT_GENERATOR = Stage(
    "client_generator",
    GENERATORS,
    {"output": "client_{client}.safetensors"},
    _client_generator,
    place=("client",),
)


def client_generators(config: OneShotLine) -> list[File]:
    """Return the generators of the members, in the order of clients."""
    return [CLIENT_GENERATOR(config, client) for client in members(config)]


def _generated(config: OneShotLine) -> Files:
    """Return what images are generated with."""
    return {**_info(config), "generators": client_generators(config)}


_IMAGES = {
    "output": "train.safetensors",
    "histogram": "label_histogram.parquet",
    "picture": "images.png",
}
GENERATED_IMAGES = Stage("generated", GENERATED, _IMAGES | {"rounds": "rounds.parquet"}, _generated)


def _synthesised(config: OneShotLine) -> Files:
    """Return what the server generates images against, and what the student starts from."""
    models = one_shot_artefacts.local_models(local_line(config))
    return {
        **_info(config),
        "models": [models[client] for client in members(config)],
        "start": student_start(config),
    }


SYNTHESISED_IMAGES = Stage(
    "synthesised",
    SYNTHESISED,
    _IMAGES | {"student": "student.safetensors", "weights": "weights.safetensors"},
    _synthesised,
)


def generated_images(config: OneShotLine, output: str = "output") -> File:
    """Return a file of the images that a generator makes, by default the images."""
    assert config.generator is not None, "checked by OneShotLine: who reads such images has one"
    by_server = config.generator.trained_by == "server"
    return (SYNTHESISED_IMAGES if by_server else GENERATED_IMAGES)(config, output=output)
