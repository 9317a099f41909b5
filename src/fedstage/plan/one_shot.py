"""One-shot federated learning: each stage, its files, and what they are made from.

The clients' models are declared in `fedstage.plan.unfederated`; `one_shot_sharing` declares the
settings behind them for every file that is made from models.
"""

from functools import partial

from fedstage.plan import data_files, unfederated
from fedstage.plan.data_files import info
from fedstage.plan.graph import File, Stage, never
from fedstage.plan.inputs import (
    AggregatorInputs,
    ClientsInputs,
    ClosedFormModelInputs,
    DistilledModelInputs,
    FeatureMomentsInputs,
    GeneratedInputs,
    OneShotEvaluationInputs,
    SynthesisedInputs,
)
from fedstage.plan.one_shot_sharing import (
    AGGREGATORS,
    GENERATED,
    GENERATORS,
    MOMENTS,
    STUDENTS,
    SYNTHESISED,
    start_setting,
    student_start,
)
from fedstage.protocol.one_shot import learns_from_ensemble, learns_from_moments, members
from fedstage.protocol.server import needs_validation
from fedstage.protocol.teaching import teaching_of
from fedstage.settings.data import Generated
from fedstage.settings.generators import Adversarial
from fedstage.settings.one_shot import OneShotRecipe

_one_shot = partial(Stage, module="one_shot")
_generating = partial(Stage, module="generators")

# --- images that are generated, by clients' generators or against their models --------------------


@partial(
    _generating, folder=GENERATORS, outputs={"output": "client_{client}.safetensors"}, private=True
)
def client_generator(recipe: OneShotRecipe, client: int) -> ClientsInputs[str]:
    """Train a client's generator of images."""
    return ClientsInputs(**data_files.clients_samples(recipe))


_IMAGES = {
    "output": "train.safetensors",
    "histogram": "label_histogram.parquet",
    "picture": "images.png",
}


@partial(_generating, folder=GENERATED, outputs=_IMAGES | {"rounds": "rounds.parquet"})
def generated(recipe: OneShotRecipe) -> GeneratedInputs[str]:
    """Generate images with the clients' generators."""
    generators = (client_generator(recipe, client) for client in members(recipe))
    return GeneratedInputs(info(recipe), [*generators])


@partial(
    _generating,
    folder=SYNTHESISED,
    outputs=_IMAGES | {"student": "student.safetensors", "weights": "weights.safetensors"},
)
def synthesised(recipe: OneShotRecipe) -> SynthesisedInputs[str]:
    """Generate images against an ensemble, and teach a student with them."""
    models = unfederated.members_models(recipe)
    return SynthesisedInputs(info(recipe), [*models], student_start(recipe))


def generated_images(recipe: OneShotRecipe, output: str = "output") -> File:
    """Return a file of the images that a generator makes, by default the images."""
    by_server = isinstance(recipe.generator, Adversarial)
    return (synthesised if by_server else generated)(recipe, output=output)


# --- aggregators ----------------------------------------------------------------------------------


@partial(
    _one_shot,
    folder=AGGREGATORS,
    outputs={
        "output": "aggregator.safetensors",
        "snapshots": "snapshots.safetensors",
        "rounds": "rounds.parquet",
    },
)
def aggregator(recipe: OneShotRecipe) -> AggregatorInputs[str]:
    """Train or count what combines the logits of clients' models.

    Samples are read only if it is fitted to them.
    """
    fitted_to = "aggregator" if recipe.aggregator.fitted else None
    validated = recipe.members is not None and recipe.members.judged
    return AggregatorInputs(
        models=[*unfederated.members_models(recipe)],
        quantised=[*unfederated.members_quantised(recipe)],
        logits=[*unfederated.members_logits(recipe, fitted_to)] if fitted_to else [],
        data=data_files.samples_file(recipe, fitted_to) if fitted_to else None,
        validation_logits=[*unfederated.members_logits(recipe, "validation")] if validated else [],
        validation=data_files.samples_file(recipe, "validation") if validated else None,
        clients=data_files.clients_table(recipe),
        histogram=data_files.label_histogram(recipe),
        info=info(recipe),
    )


# --- moments, and heads made of them --------------------------------------------------------------


@partial(_one_shot, folder=MOMENTS, outputs={"output": "client_{client}.safetensors"}, private=True)
def feature_moments(recipe: OneShotRecipe, client: int) -> FeatureMomentsInputs[str]:
    """Measure the features of a client's samples."""
    return FeatureMomentsInputs(**data_files.clients_samples(recipe), start=student_start(recipe))


@partial(
    _one_shot,
    folder=STUDENTS,
    outputs={"output": "model.safetensors", "rounds": "rounds.parquet"},
    on_device=never,
    reads=lambda config: ("forget",),
    used=learns_from_moments,
)
def closed_form_model(recipe: OneShotRecipe) -> ClosedFormModelInputs[str]:
    """Compute a model's last layer from moments of clients' features."""
    moments = (feature_moments(recipe, client) for client in members(recipe))
    return ClosedFormModelInputs([*moments], student_start(recipe))


# --- students -------------------------------------------------------------------------------------


def public_id(recipe: OneShotRecipe) -> str:
    """Name the public images for `samples_file`."""
    if isinstance(recipe.public, Generated):
        _, folder, name = generated_images(recipe).job.folder.split("/")
        return f"{folder}.{name}"
    return data_files.public_id(recipe)


@partial(
    _one_shot,
    folder=STUDENTS,
    outputs={"output": "model.safetensors"},
    reads=lambda config: ("server", "public", *start_setting(config)),
    used=lambda config: not learns_from_moments(config),
)
def distilled_model(recipe: OneShotRecipe) -> DistilledModelInputs[str]:
    """Teach a model with a one-shot ensemble's logits."""
    taught, public = learns_from_ensemble(recipe), public_id(recipe)
    judged = needs_validation(teaching_of(recipe).server)
    validation = data_files.data_file(recipe.data, "server_validation")
    return DistilledModelInputs(
        info=info(recipe),
        aggregator=aggregator(recipe) if taught else None,
        logits=[*unfederated.members_logits(recipe, public)] if taught else [],
        start=student_start(recipe),
        public=data_files.samples_file(recipe, public),
        server_validation=validation if judged else None,
        **data_files.possibly_public(recipe),
    )


def student_file(recipe: OneShotRecipe) -> File:
    """Return the model of a student."""
    how = recipe.distillation
    if how is not None and how.name == "cotrained":
        return generated_images(recipe, "student")
    return (closed_form_model if learns_from_moments(recipe) else distilled_model)(recipe)


# --- what travels, and scores ---------------------------------------------------------------------


def generates(recipe: OneShotRecipe) -> bool:
    """Whether predictions depend on generated images."""
    return recipe.distillation is not None and isinstance(recipe.public, Generated)


def clients_generate(recipe: OneShotRecipe) -> bool:
    """Whether clients send generators, on whose images predictions depend."""
    return generates(recipe) and generated_images(recipe).job.stage is generated


def reads_models(recipe: OneShotRecipe) -> bool:
    """Whether predictions depend on the clients' models."""
    by_server = generates(recipe) and not clients_generate(recipe)
    return learns_from_ensemble(recipe) or by_server


def traffic_tables(recipe: OneShotRecipe) -> list[File]:
    """Return the tables of everything that travels."""
    if learns_from_moments(recipe):
        return [closed_form_model(recipe, output="rounds")]
    models = [aggregator(recipe, output="rounds")] if reads_models(recipe) else []
    return models + ([generated_images(recipe, "rounds")] if clients_generate(recipe) else [])


def travelling_models(recipe: OneShotRecipe) -> list[str]:
    """Return the models that clients send; if they send none, the one model that is learnt.

    Its size is what a client would send, where clients send generators or moments.
    """
    return [*unfederated.members_models(recipe)] if reads_models(recipe) else [student_file(recipe)]


def one_shot_evaluation(recipe: OneShotRecipe, role: str) -> OneShotEvaluationInputs[str]:
    """Score one-shot federated learning.

    What is scored is an aggregator, or a student in its place.
    """
    taught = recipe.distillation is not None
    return OneShotEvaluationInputs(
        student=student_file(recipe) if taught else None,
        aggregator=None if taught else aggregator(recipe),
        snapshots=None if taught else aggregator(recipe, output="snapshots"),
        logits=[] if taught else [*unfederated.members_logits(recipe, role)],
        **data_files.scored_samples(recipe, role),
        rounds=[*traffic_tables(recipe)],
    )


def _is_scored(taught: bool, recipe: OneShotRecipe) -> bool:
    """Whether what is scored of a recipe is a student, if `taught`, or else an aggregator."""
    return taught == (recipe.distillation is not None)


EVALUATIONS = {
    taught: _one_shot(
        one_shot_evaluation,
        folder=folder,
        outputs={
            "output": "metrics/{role}.parquet",
            "over_rounds": "metrics/{role}_over_rounds.parquet",
        },
        used=partial(_is_scored, taught),
    )
    for taught, folder in ((False, AGGREGATORS), (True, STUDENTS))
}


def one_shot_metrics_file(recipe: OneShotRecipe, role: str, output: str = "output") -> File:
    """Return the metrics of the final predictions, or of an aggregator over its rounds."""
    return EVALUATIONS[recipe.distillation is not None](recipe, role, output=output)
