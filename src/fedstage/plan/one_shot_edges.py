"""The edges of models that are trained to the end: which files each of their stages reads.

As in `fedstage.plan.edges`, one function for each stage returns its inputs by option.
"""

from fedstage.errors import FedstageError
from fedstage.plan import artefacts, data_files, one_shot_artefacts
from fedstage.plan.edges import Files, settings_files
from fedstage.plan.generator_files import traffic_tables
from fedstage.plan.one_shot_sharing import (
    aggregating,
    learns_from_ensemble,
    local_line,
    members,
)
from fedstage.settings.lines import LocalLine
from fedstage.settings.one_shot import OneShotLine


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


def aggregator(line: OneShotLine) -> Files:
    """Return what an aggregator is made from; samples only if it is fitted to them."""
    models = one_shot_artefacts.local_models(local_line(line))
    none: Files = {key: [] for key in ("logits", "data", "validation_logits", "validation")}
    return none | {
        **settings_files(one_shot_artefacts.aggregator_folder(line), line.data),
        "models": [models[client] for client in members(line)],
        "quantised": one_shot_artefacts.members_quantised(line),
        **_partition(local_line(line)),
        **aggregator_reads(line),
    }


def aggregator_reads(line: OneShotLine) -> Files:
    """Return what an aggregator is fitted to, and stopped or its members chosen by, if any."""
    judged = line.members is not None and line.members.judged
    if not line.aggregator.fitted:
        return _validation(line) if judged else {}
    training = aggregating(line).aggregator_training
    proxy = training is not None and training.name == "proxy"
    images = "server_validation" if proxy else "aggregator"
    read: Files = {
        "logits": one_shot_artefacts.members_logits(line, images),
        "data": data_files.samples_file(line, images),
    }
    stopped = training is not None and training.early_stopping is not None
    return read | (_validation(line) if judged or stopped else {})


def _validation(line: OneShotLine) -> Files:
    return {
        "validation_logits": one_shot_artefacts.members_logits(line, "validation"),
        "validation": data_files.samples_file(line, "validation"),
    }


def distilled_model(line: OneShotLine) -> Files:
    """Return what a student of a one-shot ensemble learns from."""
    taught, public = learns_from_ensemble(line), artefacts.public_id(line)
    return {
        **settings_files(one_shot_artefacts.student_folder(line), line.data),
        "aggregator": one_shot_artefacts.aggregator_file(line) if taught else [],
        "logits": one_shot_artefacts.members_logits(line, public) if taught else [],
        "start": one_shot_artefacts.student_start(line),
        "public": artefacts.public_file(line),
        "server_validation": artefacts.server_validation(line) or [],
    }


def one_shot_evaluation(line: OneShotLine, role: str) -> Files:
    """Return what the score of an aggregator, or of a line's student, is computed from."""
    taught = line.distillation is not None
    return {
        "student": one_shot_artefacts.student_file(line) if taught else [],
        "aggregator": [] if taught else one_shot_artefacts.aggregator_file(line),
        "snapshots": [] if taught else one_shot_artefacts.aggregator_snapshots(line),
        "logits": [] if taught else one_shot_artefacts.members_logits(line, role),
        **settings_files(one_shot_artefacts.one_shot_folder(line), line.data),
        "data": data_files.samples_file(line, role),
        **_partition(local_line(line)),
        "rounds": traffic_tables(line),
    }


def _settings(line: LocalLine) -> Files:
    return settings_files(one_shot_artefacts.local_folder(line), line.data)


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
