"""Images that are generated in one shot: by clients' generators, or against their models."""

from typing import Any

from fedstage.plan import data_files, unfederated
from fedstage.plan.commands import always
from fedstage.plan.graph import File, Stage
from fedstage.plan.inputs import ClientGeneratorInputs, GeneratedInputs, SynthesisedInputs
from fedstage.plan.one_shot_folders import GENERATED, GENERATORS, SYNTHESISED, student_start
from fedstage.plan.one_shot_sharing import local_line, members
from fedstage.settings.generators import Adversarial
from fedstage.settings.one_shot import OneShotLine


def info(config: Any) -> str:
    """Return the description of the clients' data set."""
    return data_files.data_file(config.data, "info")


def _client_generator(config: OneShotLine, client: int) -> ClientGeneratorInputs[str]:
    """Return what a client's generator is trained on."""
    return ClientGeneratorInputs(
        data=data_files.data_file(config.data, "train"),
        info=info(config),
        clients=data_files.clients_table(local_line(config)),
    )


CLIENT_GENERATOR = Stage(
    name="client_generator",
    about="train a client's generator of images",
    folder=GENERATORS,
    outputs={"output": "client_{client}.safetensors"},
    inputs=_client_generator,
    place=("client",),
    takes=("client",),
    on_device=always,
)


def client_generators(config: OneShotLine) -> list[File]:
    """Return the generators of the members, in the order of clients."""
    return [CLIENT_GENERATOR(config, client) for client in members(config)]


def _generated(config: OneShotLine) -> GeneratedInputs[str]:
    """Return what images are generated with."""
    return GeneratedInputs(info(config), [*client_generators(config)])


_IMAGES = {
    "output": "train.safetensors",
    "histogram": "label_histogram.parquet",
    "picture": "images.png",
}
GENERATED_IMAGES = Stage(
    name="generated",
    about="generate images with the clients' generators",
    folder=GENERATED,
    outputs=_IMAGES | {"rounds": "rounds.parquet"},
    inputs=_generated,
    on_device=always,
)


def _synthesised(config: OneShotLine) -> SynthesisedInputs[str]:
    """Return what the server generates images against, and what the student starts from."""
    models = unfederated.local_models(local_line(config))
    chosen = (models[client] for client in members(config))
    return SynthesisedInputs(info(config), [*chosen], student_start(config))


SYNTHESISED_IMAGES = Stage(
    name="synthesised",
    about="generate images against an ensemble, and teach a student with them",
    folder=SYNTHESISED,
    outputs=_IMAGES | {"student": "student.safetensors", "weights": "weights.safetensors"},
    inputs=_synthesised,
    on_device=always,
    batches=("server",),
)


def generated_images(config: OneShotLine, output: str = "output") -> File:
    """Return a file of the images that a generator makes, by default the images."""
    by_server = isinstance(config.generator, Adversarial)
    return (SYNTHESISED_IMAGES if by_server else GENERATED_IMAGES)(config, output=output)
