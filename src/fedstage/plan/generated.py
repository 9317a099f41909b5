"""Images that are generated in one shot: by clients' generators, or against their models."""

from functools import partial

from fedstage.plan import data_files, unfederated
from fedstage.plan.data_files import info
from fedstage.plan.graph import File, Stage
from fedstage.plan.inputs import ClientsInputs, GeneratedInputs, SynthesisedInputs
from fedstage.plan.one_shot_folders import GENERATED, GENERATORS, SYNTHESISED, student_start
from fedstage.plan.one_shot_sharing import members
from fedstage.settings.generators import Adversarial
from fedstage.settings.one_shot import OneShotRecipe


@partial(Stage, folder=GENERATORS, outputs={"output": "client_{client}.safetensors"})
def client_generator(recipe: OneShotRecipe, client: int) -> ClientsInputs[str]:
    """Train a client's generator of images."""
    return ClientsInputs(**data_files.clients_samples(recipe))


def client_generators(recipe: OneShotRecipe) -> list[File]:
    """Return the generators of the members, in the order of clients."""
    return [client_generator(recipe, client) for client in members(recipe)]


_IMAGES = {
    "output": "train.safetensors",
    "histogram": "label_histogram.parquet",
    "picture": "images.png",
}


@partial(Stage, folder=GENERATED, outputs=_IMAGES | {"rounds": "rounds.parquet"})
def generated(recipe: OneShotRecipe) -> GeneratedInputs[str]:
    """Generate images with the clients' generators."""
    return GeneratedInputs(info(recipe), [*client_generators(recipe)])


@partial(
    Stage,
    folder=SYNTHESISED,
    outputs=_IMAGES | {"student": "student.safetensors", "weights": "weights.safetensors"},
    batches=("server",),
)
def synthesised(recipe: OneShotRecipe) -> SynthesisedInputs[str]:
    """Generate images against an ensemble, and teach a student with them."""
    models = unfederated.members_models(recipe)
    return SynthesisedInputs(info(recipe), [*models], student_start(recipe))


def generated_images(recipe: OneShotRecipe, output: str = "output") -> File:
    """Return a file of the images that a generator makes, by default the images."""
    by_server = isinstance(recipe.generator, Adversarial)
    return (synthesised if by_server else generated)(recipe, output=output)
