"""Where every file of models that are trained to the end is."""

from fedstage.plan.data_files import initial_model
from fedstage.plan.identity import local_id, quantisation_id
from fedstage.plan.one_shot_sharing import (
    client_model,
    local_line,
    members,
    quantised_line,
)
from fedstage.plan.results import RESULTS
from fedstage.settings.lines import Line, LocalLine
from fedstage.settings.one_shot import OneShotLine


def local_folder(line: LocalLine) -> str:
    """Return the folder of models that are trained without federation."""
    return f"{RESULTS}/local_models/{local_id(line)}"


def trained_on(line: LocalLine) -> str | None:
    """Return what a single model is trained on: ``pooled`` or ``core``; None if each client is."""
    return "pooled" if line.pooled else "core" if line.on_core else None


def local_models(line: LocalLine) -> list[str]:
    """Return a model a client, or the one of the pooled data, or of the server's core."""
    if who := trained_on(line):
        return [f"{local_folder(line)}/{who}.safetensors"]
    return [f"{local_folder(line)}/client_{client}.safetensors" for client in range(line.clients)]


def local_metrics_file(line: LocalLine, role: str, rounds: int, client: int | None = None) -> str:
    """Return the metrics of all clients' models, as means, or of one, with their quantisation.

    The metrics are entered under the round that they are compared with.
    """
    who = trained_on(line) or "each_client" if client is None else f"client_{client}"
    folder = f"{local_folder(line)}/metrics/{quantisation_id(line.quantisation)}"
    return f"{folder}/{who}-{role}-rounds_{rounds:04d}.parquet"


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


def partition_line(line: Line | LocalLine | OneShotLine) -> Line | LocalLine:
    """Return the line whose partition a run has."""
    return local_line(line) if isinstance(line, OneShotLine) else line


def models_in_precision(line: LocalLine) -> list[str]:
    """Return the models of a line, quantised if it has a quantisation."""
    if line.quantisation.name == "none":
        return local_models(line)
    folder = f"{local_folder(line)}/quantised/{quantisation_id(line.quantisation)}"
    return [f"{folder}/client_{client}.safetensors" for client in range(line.clients)]


def scored_models(line: LocalLine) -> dict[str, list[str]]:
    """Return the models that can be scored together, with the line's quantisation.

    The keys are ``pooled`` or ``core``, or ``each_client`` (the mean over all), ``client_0`` and
    so on.
    """
    models = models_in_precision(line)
    if who := trained_on(line):
        return {who: models}
    alone = {f"client_{client}": [path] for client, path in enumerate(models)}
    return {"each_client": models} | alone


def client_logits(line: LocalLine, client: int, images: str) -> str:
    """Return the logits of a client's model, with its quantisation, on images.

    `images` names a file of `samples_file`; of a role they are the samples of all clients.
    """
    precision = quantisation_id(line.quantisation)
    return f"{local_folder(line)}/logits/{precision}/client_{client}-{images}.safetensors"


def members_logits(line: OneShotLine, images: str) -> list[str]:
    """Return the logits of a one-shot ensemble's members on images, in the order of clients."""
    return [client_logits(quantised_line(line), client, images) for client in members(line)]


def members_quantised(line: OneShotLine) -> list[str]:
    """Return the quantised models of a one-shot ensemble, if it has them."""
    if line.quantisation.name == "none":
        return []
    models = models_in_precision(quantised_line(line))
    return [models[client] for client in members(line)]
