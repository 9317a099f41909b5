"""Images that are generated in one shot: by clients' generators, or against their models."""

from fedstage.plan import data_files, unfederated
from fedstage.plan.data_files import info
from fedstage.plan.graph import File, Stage
from fedstage.plan.inputs import ClientsInputs, GeneratedInputs, SynthesisedInputs
from fedstage.plan.one_shot_folders import GENERATED, GENERATORS, SYNTHESISED, student_start
from fedstage.plan.one_shot_sharing import members
from fedstage.settings.generators import Adversarial
from fedstage.settings.one_shot import OneShotRecipe


def _client_generator(recipe: OneShotRecipe, client: int) -> ClientsInputs[str]:
    """Return what a client's generator is trained on."""
    return ClientsInputs(**data_files.clients_samples(recipe))


CLIENT_GENERATOR = Stage(
    name="client_generator",
    about="train a client's generator of images",
    folder=GENERATORS,
    outputs={"output": "client_{client}.safetensors"},
    inputs=_client_generator,
)


def client_generators(recipe: OneShotRecipe) -> list[File]:
    """Return the generators of the members, in the order of clients."""
    return [CLIENT_GENERATOR(recipe, client) for client in members(recipe)]


def _generated(recipe: OneShotRecipe) -> GeneratedInputs[str]:
    """Return what images are generated with."""
    return GeneratedInputs(info(recipe), [*client_generators(recipe)])


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
)


def _synthesised(recipe: OneShotRecipe) -> SynthesisedInputs[str]:
    """Return what the server generates images against, and what the student starts from."""
    models = unfederated.members_models(recipe)
    return SynthesisedInputs(info(recipe), [*models], student_start(recipe))


SYNTHESISED_IMAGES = Stage(
    name="synthesised",
    about="generate images against an ensemble, and teach a student with them",
    folder=SYNTHESISED,
    outputs=_IMAGES | {"student": "student.safetensors", "weights": "weights.safetensors"},
    inputs=_synthesised,
    batches=("server",),
)


def generated_images(recipe: OneShotRecipe, output: str = "output") -> File:
    """Return a file of the images that a generator makes, by default the images."""
    by_server = isinstance(recipe.generator, Adversarial)
    return (SYNTHESISED_IMAGES if by_server else GENERATED_IMAGES)(recipe, output=output)
