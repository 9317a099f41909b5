"""The edges of models that are trained to the end: which files each of their stages reads.

One function for each stage returns its inputs by option.
"""

from fedstage.errors import FedstageError
from fedstage.plan import data_files, one_shot_artefacts
from fedstage.settings.lines import LocalLine

#: Files by the option of the stage that reads them.
Files = dict[str, str | list[str]]


def local_model(line: LocalLine, client: int | None) -> Files:
    """Return what a client, or the only model (None), is trained from."""
    own = _own_samples(line)
    if line.on_core:
        own |= {"data": data_files.core_file(line), "clients": []}
    return own | {"start": one_shot_artefacts.local_start(line, client)}


def quantised_model(line: LocalLine) -> Files:
    """Return what a client's model is calibrated on."""
    return _own_samples(line)


def client_logits(line: LocalLine, client: int | None, images: str) -> Files:
    """Return what the logits of a client's model, with its quantisation, are computed from."""
    of_clients = images in ("validation", "aggregator")
    return {
        **_settings(line),
        "clients": data_files.clients_table(line) if of_clients else [],
        "model": one_shot_artefacts.models_in_precision(line)[client or 0],
        "data": data_files.samples_file(line, images),
    }


def local_evaluation(line: LocalLine, who: str, role: str) -> Files:
    """Return what the scores of clients' models, with their quantisation, are computed from.

    Raises
    ------
    FedstageError
        If the line has no such models.
    """
    models = one_shot_artefacts.scored_models(line)
    if who not in models:
        raise FedstageError(f"scores of {who}: no such models; use one of {', '.join(models)}")
    return {
        **_settings(line),
        "models": models[who],
        "data": data_files.samples_file(line, role),
        **_partition(line),
    }


def _settings(line: LocalLine) -> Files:
    folder = one_shot_artefacts.local_folder(line)
    return {"line": f"{folder}/line.yaml", "info": data_files.data_file(line.data, "info")}


def _own_samples(line: LocalLine) -> Files:
    return {
        **_settings(line),
        "data": data_files.data_file(line.data, "train"),
        "clients": data_files.clients_table(line),
    }


def _partition(line: LocalLine) -> Files:
    return {
        "clients": data_files.clients_table(line),
        "histogram": data_files.label_histogram(line),
    }
