"""One-shot federated learning: each stage, its files, and what they are made from.

The clients' models are those of `fedstage.plan.one_shot_artefacts`; `one_shot_folders` declares the
settings behind them for every file that is made from models.
"""

from typing import Any

from fedstage.plan import data_files, one_shot_artefacts
from fedstage.plan.generated import (
    GENERATED_IMAGES,
    client_generators,
    generated_images,
)
from fedstage.plan.graph import File, Files, Stage
from fedstage.plan.identity import data_id
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

# --- aggregators ----------------------------------------------------------------------------------


def _info(config: Any) -> dict[str, str]:
    return {"info": data_files.data_file(config.data, "info")}


def _partition(config: Any) -> dict[str, str]:
    local = local_line(config)
    return {
        "clients": data_files.clients_table(local),
        "histogram": data_files.label_histogram(local),
    }


def _aggregator(config: OneShotLine) -> Files:
    """Return what an aggregator is made from; samples only if it is fitted to them."""
    models = one_shot_artefacts.local_models(local_line(config))
    fitted_to = ("logits", "data", "validation_logits", "validation")
    none: dict[str, Any] = {option: [] for option in fitted_to}
    return none | {
        **_info(config),
        "models": [models[client] for client in members(config)],
        "quantised": one_shot_artefacts.members_quantised(config),
        **_partition(config),
        **aggregator_reads(config),
    }


def aggregator_reads(config: OneShotLine) -> dict[str, Any]:
    """Return what an aggregator is fitted to, and stopped or its members chosen by, if any."""
    judged = config.members is not None and config.members.judged
    if not config.aggregator.fitted:
        return _validation(config) if judged else {}
    training = config.aggregator_training if config.aggregator.trained else None
    proxy = training is not None and training.name == "proxy"
    images = "server_validation" if proxy else "aggregator"
    read = {
        "logits": one_shot_artefacts.members_logits(config, images),
        "data": data_files.samples_file(config, images),
    }
    stopped = training is not None and training.early_stopping is not None
    return read | (_validation(config) if judged or stopped else {})


def _validation(config: OneShotLine) -> dict[str, Any]:
    return {
        "validation_logits": one_shot_artefacts.members_logits(config, "validation"),
        "validation": data_files.samples_file(config, "validation"),
    }


AGGREGATOR = Stage(
    "aggregator",
    AGGREGATORS,
    {
        "output": "aggregator.safetensors",
        "snapshots": "snapshots.safetensors",
        "rounds": "rounds.parquet",
    },
    _aggregator,
)


# --- moments, and heads made of them --------------------------------------------------------------


def _feature_moments(config: OneShotLine, client: int) -> Files:
    """Return what a client measures: its samples, through the encoder that all have."""
    return {
        **_info(config),
        "data": data_files.data_file(config.data, "train"),
        "clients": data_files.clients_table(local_line(config)),
        "start": student_start(config),
    }


FEATURE_MOMENTS = Stage(
    "feature_moments",
    MOMENTS,
    {"output": "client_{client}.safetensors"},
    _feature_moments,
    place=("client",),
)


def _closed_form_model(config: OneShotLine) -> Files:
    """Return what a model with a head of moments is made of."""
    moments = [FEATURE_MOMENTS(config, client) for client in members(config)]
    return {**_info(config), "moments": moments, "start": student_start(config)}


CLOSED_FORM_MODEL = Stage(
    "closed_form_model",
    STUDENTS,
    {"output": "model.safetensors", "rounds": "rounds.parquet"},
    _closed_form_model,
    reads=lambda config: ("forget",),
)


# --- students -------------------------------------------------------------------------------------


def public_id(config: OneShotLine) -> str:
    """Name the public images as `samples_file` reads it."""
    if isinstance(config.public, Generated):
        _, folder, name = generated_images(config).job.folder.split("/")
        return f"{folder}.{name}"
    if isinstance(config.public, HeldOut | CoreSamples):
        return config.public.name
    return data_id(config.public)


def _public(config: OneShotLine) -> str:
    if isinstance(config.public, Generated):
        return generated_images(config)
    return data_files.samples_file(config, public_id(config))


def _distilled_model(config: OneShotLine) -> Files:
    """Return what a student of a one-shot ensemble learns from."""
    taught, public = learns_from_ensemble(config), public_id(config)
    judged = config.server is not None and needs_validation(config.server)
    validation = data_files.data_file(config.data, "server_validation")
    return {
        **_info(config),
        "aggregator": AGGREGATOR(config) if taught else [],
        "logits": one_shot_artefacts.members_logits(config, public) if taught else [],
        "start": student_start(config),
        "public": _public(config),
        "server_validation": validation if judged else [],
    }


DISTILLED_MODEL = Stage(
    "distilled_model",
    STUDENTS,
    {"output": "model.safetensors"},
    _distilled_model,
    reads=lambda config: ("server", "public", *start_setting(config)),
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
    models = one_shot_artefacts.local_models(local_line(config))
    return [models[client] for client in members(config)]


def _one_shot_evaluation(config: OneShotLine, role: str) -> Files:
    """Return what the score of an aggregator, or of a student, is computed from."""
    taught = config.distillation is not None
    return {
        "student": student_file(config) if taught else [],
        "aggregator": [] if taught else AGGREGATOR(config),
        "snapshots": [] if taught else AGGREGATOR(config, output="snapshots"),
        "logits": [] if taught else one_shot_artefacts.members_logits(config, role),
        **_info(config),
        "data": data_files.samples_file(config, role),
        **_partition(config),
        "rounds": list(traffic_tables(config)),
    }


_SCORES = {
    "output": "metrics/{role}.parquet",
    "over_rounds": "metrics/{role}_over_rounds.parquet",
}
EVALUATIONS = {
    taught: Stage("one_shot_evaluation", folder, _SCORES, _one_shot_evaluation, place=("role",))
    for taught, folder in ((False, AGGREGATORS), (True, STUDENTS))
}


def one_shot_metrics_file(config: OneShotLine, role: str, output: str = "output") -> File:
    """Return the metrics of the final predictions, or of an aggregator over its rounds."""
    return EVALUATIONS[config.distillation is not None](config, role, output=output)


def one_shot_folder(config: OneShotLine) -> str:
    """Return the folder of what predicts: a student if there is one, or an aggregator."""
    return one_shot_metrics_file(config, "test").job.folder
