"""Models that are trained to the end without federation: each stage, its files and their inputs.

Each client trains alone, for one-shot learning or to be compared with, or there is a single model
of the pooled data, or of the server's core.
"""

from typing import Any

from fedstage.errors import FedstageError
from fedstage.plan.commands import always
from fedstage.plan.data_files import (
    clients_table,
    core_file,
    data_file,
    initial_model,
    label_histogram,
    samples_file,
)
from fedstage.plan.digests import canonical
from fedstage.plan.graph import File, Folder, Stage, folder_of, line_file
from fedstage.plan.identity import common_name
from fedstage.plan.inputs import (
    ClientLogitsInputs,
    LocalEvaluationInputs,
    LocalModelInputs,
    QuantisedModelInputs,
)
from fedstage.plan.one_shot_sharing import (
    client_model,
    members,
    quantised_line,
    trained_on,
    unquantised,
)
from fedstage.settings.lines import LocalLine
from fedstage.settings.one_shot import OneShotLine


def _label(line: LocalLine) -> str:
    return f"{common_name(line)}-{trained_on(line) or 'alone'}-seed{line.seed}"


FOLDER = Folder(
    "local_models", LocalLine, _label, lambda line: LocalLine.model_fields.keys() - {"quantisation"}
)


def local_folder(line: LocalLine) -> str:
    """Return the folder of models that are trained without federation."""
    return folder_of(FOLDER, unquantised(line))


def local_id(line: LocalLine) -> str:
    """Return the name of this folder."""
    return local_folder(line).rpartition("/")[2]


def _in_precision(part: str) -> Folder:
    """Return a folder, inside that of the models, of what is made with a quantisation."""

    def label(line: LocalLine) -> str:
        how = "fp32" if line.quantisation.name == "none" else line.quantisation.name
        return f"{local_id(line)}/{part}/{how}"

    def identity(line: LocalLine) -> Any:
        return None if line.quantisation.name == "none" else canonical(line.quantisation)

    return Folder(
        FOLDER.name,
        LocalLine,
        label,
        line=False,
        identity=identity,
        pattern=f"{{line}}/{part}/{{precision}}",
        setting="quantisation",
    )


def client_of(who: str) -> int | None:
    """Return the number of a client that trains alone, None for pooled data and the core."""
    return int(who.removeprefix("client_")) if who.startswith("client_") else None


# --- models ---------------------------------------------------------------------------------------


def _local_model(line: LocalLine, who: str) -> LocalModelInputs[str]:
    """Return what a client, or the only model, is trained from."""
    return LocalModelInputs(
        data=core_file(line) if line.on_core else data_file(line.data, "train"),
        info=data_file(line.data, "info"),
        clients=None if line.on_core else clients_table(line),
        start=local_start(line, client_of(who)),
    )


LOCAL_MODEL = Stage(
    name="local_model",
    about="train a client, the pooled data, or the server's core, to the end",
    folder=FOLDER,
    outputs={"output": "{who}.safetensors"},
    inputs=_local_model,
    place=("who",),
    takes=("who",),
    on_device=always,
    batches=("client",),
)


def _quantised_model(line: LocalLine, who: str) -> QuantisedModelInputs[str]:
    """Return what a client's model is quantised from."""
    return QuantisedModelInputs(
        line=line_file(local_folder(line)),
        model=LOCAL_MODEL(line, who),
        data=data_file(line.data, "train"),
        info=data_file(line.data, "info"),
        clients=clients_table(line),
    )


QUANTISED_MODEL = Stage(
    name="quantised_model",
    about="quantise the model of a client, calibrated on its own samples",
    folder=_in_precision("quantised"),
    outputs={"output": "{who}.safetensors"},
    inputs=_quantised_model,
    place=("who",),
    on_device=always,
)


def local_start(line: LocalLine, client: int | None) -> str:
    """Return the weights that a client, or the only model (None), starts from.

    Without a `start` they are an initial model of the seed, which federated runs share.
    """
    if line.start is not None:
        return line.start
    if client is None:
        return initial_model(line.data, line.model, line.seed, group=0)
    group = client if line.initialisation == "own" else 0
    return initial_model(line.data, client_model(line, client), line.seed, group)


def _names(line: LocalLine) -> list[str]:
    """Return the names of a line's models."""
    who = trained_on(line)
    return [who] if who else [f"client_{client}" for client in range(line.clients)]


def local_models(line: LocalLine) -> list[File]:
    """Return a model a client, or the one of the pooled data, or of the server's core."""
    return [LOCAL_MODEL(line, who) for who in _names(line)]


def models_in_precision(line: LocalLine) -> list[File]:
    """Return the models of a line, quantised if it has a quantisation."""
    return [_used(line, who) for who in _names(line)]


def _used(line: LocalLine, who: str) -> File:
    return (LOCAL_MODEL if line.quantisation.name == "none" else QUANTISED_MODEL)(line, who)


def members_quantised(line: OneShotLine) -> list[File]:
    """Return the quantised models of a one-shot ensemble, if it has them."""
    if line.quantisation.name == "none":
        return []
    models = models_in_precision(quantised_line(line))
    return [models[client] for client in members(line)]


# --- logits and scores ----------------------------------------------------------------------------


def _client_logits(line: LocalLine, who: str, images: str) -> ClientLogitsInputs[str]:
    """Return what the logits of a model, with its quantisation, are computed from."""
    return ClientLogitsInputs(
        line=line_file(local_folder(line)),
        model=_used(line, who),
        data=samples_file(line, images),
        info=data_file(line.data, "info"),
        clients=clients_table(line) if images in ("validation", "aggregator") else None,
    )


#: `images` names a file of `samples_file`; of a role they are the samples of all clients.
CLIENT_LOGITS = Stage(
    name="client_logits",
    about="compute the logits of a model that a client has trained to the end",
    folder=_in_precision("logits"),
    outputs={"output": "{who}-{images}.safetensors"},
    inputs=_client_logits,
    place=("who", "images"),
    takes=("images",),
    on_device=always,
)


def members_logits(line: OneShotLine, images: str) -> list[File]:
    """Return the logits of a one-shot ensemble's members on images, in the order of clients."""
    precise = quantised_line(line)
    return [CLIENT_LOGITS(precise, f"client_{client}", images) for client in members(line)]


def scored_models(line: LocalLine) -> dict[str, list[File]]:
    """Return the models that can be scored together, with the line's quantisation.

    The keys are ``pooled`` or ``core``, or ``each_client`` (the mean over all), ``client_0`` and
    so on.
    """
    models = models_in_precision(line)
    every = {} if trained_on(line) else {"each_client": models}
    return every | {who: [model] for who, model in zip(_names(line), models, strict=True)}


def _local_evaluation(
    line: LocalLine, who: str, role: str, rounds: int
) -> LocalEvaluationInputs[str]:
    """Return what the scores of models, with their quantisation, are computed from."""
    models = scored_models(line)
    if who not in models:
        raise FedstageError(f"scores of {who}: no such models; use one of {', '.join(models)}")
    return LocalEvaluationInputs(
        line=line_file(local_folder(line)),
        models=[*models[who]],
        data=samples_file(line, role),
        info=data_file(line.data, "info"),
        clients=clients_table(line),
        histogram=label_histogram(line),
    )


#: The scores are entered under the round that they are compared with.
LOCAL_EVALUATION = Stage(
    name="local_evaluation",
    about="score models that were trained without federation",
    folder=_in_precision("metrics"),
    outputs={"output": "{who}-{role}-rounds_{rounds:04d}.parquet"},
    inputs=_local_evaluation,
    place=("who", "role", "rounds"),
    takes=("who", "role", "rounds"),
    on_device=always,
)


def local_metrics_file(line: LocalLine, role: str, rounds: int, client: int | None = None) -> File:
    """Return the metrics of all models, as means, or of one client's."""
    who = trained_on(line) or "each_client" if client is None else f"client_{client}"
    return LOCAL_EVALUATION(line, who, role, rounds)
