"""One-shot federated learning: each stage, its files, and what they are made from.

The clients' models are those of `fedstage.plan.unfederated`; `one_shot_folders` declares the
settings behind them for every file that is made from models.
"""

from fedstage.plan import data_files, unfederated
from fedstage.plan.commands import always
from fedstage.plan.generated import (
    GENERATED_IMAGES,
    client_generators,
    generated_images,
    info,
)
from fedstage.plan.graph import File, Stage
from fedstage.plan.inputs import (
    AggregatorInputs,
    ClosedFormModelInputs,
    DistilledModelInputs,
    FeatureMomentsInputs,
    OneShotEvaluationInputs,
)
from fedstage.plan.one_shot_folders import (
    AGGREGATORS,
    MOMENTS,
    STUDENTS,
    start_setting,
    student_start,
)
from fedstage.plan.one_shot_sharing import (
    learns_from_ensemble,
    learns_from_moments,
    local_line,
    members,
)
from fedstage.settings.one_shot import OneShotLine
from fedstage.settings.public import CoreSamples, Generated, HeldOut
from fedstage.settings.server import needs_validation
from fedstage.settings.teaching import teaching_of

# --- aggregators ----------------------------------------------------------------------------------


def _aggregator(config: OneShotLine) -> AggregatorInputs[str]:
    """Return what an aggregator is made from; samples only if it is fitted to them."""
    local = local_line(config)
    models, fitted_to = unfederated.local_models(local), _fitted_to(config)
    validated = _validated(config)
    return AggregatorInputs(
        models=[models[client] for client in members(config)],
        quantised=[*unfederated.members_quantised(config)],
        logits=[*unfederated.members_logits(config, fitted_to)] if fitted_to else [],
        data=data_files.samples_file(config, fitted_to) if fitted_to else None,
        validation_logits=[*unfederated.members_logits(config, "validation")] if validated else [],
        validation=data_files.samples_file(config, "validation") if validated else None,
        clients=data_files.clients_table(local),
        histogram=data_files.label_histogram(local),
        info=info(config),
    )


def _fitted_to(config: OneShotLine) -> str | None:
    """Return the samples that an aggregator is fitted to, as `samples_file` reads it, if any."""
    if not config.aggregator.fitted:
        return None
    training = config.aggregator_training if config.aggregator.trained else None
    return "server_validation" if training and training.name == "proxy" else "aggregator"


def _validated(config: OneShotLine) -> bool:
    """Whether training is stopped, or members are chosen, by the clients' validation samples."""
    judged = config.members is not None and config.members.judged
    fitted = config.aggregator.fitted and config.aggregator.trained
    training = config.aggregator_training if fitted else None
    return judged or (training is not None and training.early_stopping is not None)


AGGREGATOR = Stage(
    name="aggregator",
    about="train or count what combines the logits of clients' models",
    folder=AGGREGATORS,
    outputs={
        "output": "aggregator.safetensors",
        "snapshots": "snapshots.safetensors",
        "rounds": "rounds.parquet",
    },
    inputs=_aggregator,
    on_device=always,
)


# --- moments, and heads made of them --------------------------------------------------------------


def _feature_moments(config: OneShotLine, client: int) -> FeatureMomentsInputs[str]:
    """Return what a client measures."""
    return FeatureMomentsInputs(
        data=data_files.data_file(config.data, "train"),
        clients=data_files.clients_table(local_line(config)),
        start=student_start(config),
        info=info(config),
    )


FEATURE_MOMENTS = Stage(
    name="feature_moments",
    about="measure the features of a client's samples",
    folder=MOMENTS,
    outputs={"output": "client_{client}.safetensors"},
    inputs=_feature_moments,
    place=("client",),
    takes=("client",),
    on_device=always,
)


def _closed_form_model(config: OneShotLine) -> ClosedFormModelInputs[str]:
    """Return what a model with a head of moments is made of."""
    moments = (FEATURE_MOMENTS(config, client) for client in members(config))
    return ClosedFormModelInputs([*moments], student_start(config))


CLOSED_FORM_MODEL = Stage(
    name="closed_form_model",
    about="compute a model's last layer from moments of clients' features",
    folder=STUDENTS,
    outputs={"output": "model.safetensors", "rounds": "rounds.parquet"},
    inputs=_closed_form_model,
    reads=lambda config: ("forget",),
    used=learns_from_moments,
)


# --- students -------------------------------------------------------------------------------------


def public_id(config: OneShotLine) -> str:
    """Name the public images as `samples_file` reads it."""
    if isinstance(config.public, Generated):
        _, folder, name = generated_images(config).job.folder.split("/")
        return f"{folder}.{name}"
    if isinstance(config.public, HeldOut | CoreSamples):
        return config.public.name
    return data_files.data_id(config.public)


def _public(config: OneShotLine) -> str:
    if isinstance(config.public, Generated):
        return generated_images(config)
    return data_files.samples_file(config, public_id(config))


def _distilled_model(config: OneShotLine) -> DistilledModelInputs[str]:
    """Return what a student of a one-shot ensemble learns from."""
    taught, public = learns_from_ensemble(config), public_id(config)
    judged = needs_validation(teaching_of(config).server)
    return DistilledModelInputs(
        info=info(config),
        aggregator=AGGREGATOR(config) if taught else None,
        logits=[*unfederated.members_logits(config, public)] if taught else [],
        start=student_start(config),
        public=_public(config),
        server_validation=data_files.data_file(config.data, "server_validation")
        if judged
        else None,
    )


DISTILLED_MODEL = Stage(
    name="distilled_model",
    about="teach a model with a one-shot ensemble's logits",
    folder=STUDENTS,
    outputs={"output": "model.safetensors"},
    inputs=_distilled_model,
    reads=lambda config: ("server", "public", *start_setting(config)),
    used=lambda config: not learns_from_moments(config),
    on_device=always,
    batches=("server",),
)


def student_file(config: OneShotLine) -> File:
    """Return the model of a student."""
    how = config.distillation
    if how is not None and how.name == "cotrained":
        return generated_images(config, "student")
    return (CLOSED_FORM_MODEL if learns_from_moments(config) else DISTILLED_MODEL)(config)


# --- what travels, and scores ---------------------------------------------------------------------


def aggregator_file(config: OneShotLine) -> File:
    """Return the learnt or counted tensors of an aggregator."""
    return AGGREGATOR(config)


def generates(config: OneShotLine) -> bool:
    """Whether predictions depend on generated images."""
    return config.distillation is not None and isinstance(config.public, Generated)


def clients_generate(config: OneShotLine) -> bool:
    """Whether clients send generators, on whose images predictions depend."""
    return generates(config) and generated_images(config).job.stage is GENERATED_IMAGES


def reads_models(config: OneShotLine) -> bool:
    """Whether predictions depend on the clients' models."""
    by_server = generates(config) and not clients_generate(config)
    return learns_from_ensemble(config) or by_server


def traffic_tables(config: OneShotLine) -> list[File]:
    """Return the tables of all that travels."""
    if learns_from_moments(config):
        return [CLOSED_FORM_MODEL(config, output="rounds")]
    models = [AGGREGATOR(config, output="rounds")] if reads_models(config) else []
    return models + ([generated_images(config, "rounds")] if clients_generate(config) else [])


def travelling_models(config: OneShotLine) -> list[str]:
    """Return what clients send: their models, or their generators where these are all.

    Where they send moments only, it is the model that they receive.
    """
    if learns_from_moments(config):
        return [student_start(config)]
    if not reads_models(config):
        return list(client_generators(config))
    models = unfederated.local_models(local_line(config))
    return [models[client] for client in members(config)]


def _one_shot_evaluation(config: OneShotLine, role: str) -> OneShotEvaluationInputs[str]:
    """Return what the score of an aggregator, or of a student, is computed from."""
    taught, local = config.distillation is not None, local_line(config)
    return OneShotEvaluationInputs(
        student=student_file(config) if taught else None,
        aggregator=None if taught else AGGREGATOR(config),
        snapshots=None if taught else AGGREGATOR(config, output="snapshots"),
        logits=[] if taught else [*unfederated.members_logits(config, role)],
        data=data_files.samples_file(config, role),
        info=info(config),
        clients=data_files.clients_table(local),
        histogram=data_files.label_histogram(local),
        rounds=[*traffic_tables(config)],
    )


EVALUATIONS = {
    taught: Stage(
        name="one_shot_evaluation",
        about="score one-shot federated learning",
        folder=folder,
        outputs={
            "output": "metrics/{role}.parquet",
            "over_rounds": "metrics/{role}_over_rounds.parquet",
        },
        inputs=_one_shot_evaluation,
        place=("role",),
        takes=("role",),
        on_device=always,
    )
    for taught, folder in ((False, AGGREGATORS), (True, STUDENTS))
}


def one_shot_metrics_file(config: OneShotLine, role: str, output: str = "output") -> File:
    """Return the metrics of the final predictions, or of an aggregator over its rounds."""
    return EVALUATIONS[config.distillation is not None](config, role, output=output)


def one_shot_folder(config: OneShotLine) -> str:
    """Return the folder of what predicts: a student if there is one, or an aggregator."""
    return one_shot_metrics_file(config, "test").job.folder
