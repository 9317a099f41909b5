"""Where generators and generated images are, and which files their stages read."""

from fedstage.plan import data_files, moments
from fedstage.plan.data_files import generated_folder
from fedstage.plan.edges import Files, settings_files
from fedstage.plan.generator_sharing import clients_generate, training_generators
from fedstage.plan.identity import generator_id
from fedstage.plan.one_shot_artefacts import aggregator_rounds, local_models, student_start
from fedstage.plan.one_shot_sharing import (
    generates,
    learns_from_moments,
    local_line,
    members,
    reads_models,
)
from fedstage.plan.results import RESULTS
from fedstage.settings.one_shot import OneShotLine


def generators_folder(line: OneShotLine) -> str:
    """Return the folder of the clients' generators."""
    return f"{RESULTS}/generators/{generator_id(training_generators(line))}"


def client_generators(line: OneShotLine) -> list[str]:
    """Return the generators of a line's members, in the order of clients."""
    return [f"{generators_folder(line)}/client_{client}.safetensors" for client in members(line)]


def generated_traffic(line: OneShotLine) -> str:
    """Return the table of what travels for the generated images."""
    return f"{generated_folder(line)}/rounds.parquet"


def traffic_tables(line: OneShotLine) -> list[str]:
    """Return the tables of all that travels for a one-shot line."""
    models = [aggregator_rounds(line)] if reads_models(line) else []
    generated = [generated_traffic(line)] if clients_generate(line) else []
    return [*models, *generated, *moments.traffic_tables(line)]


def travelling_models(line: OneShotLine) -> list[str]:
    """Return what clients send: their models, or their generators where these are all.

    Where they send moments only, it is the model that they receive.
    """
    if learns_from_moments(line):
        return [student_start(line)]
    if not reads_models(line) and generates(line):
        return client_generators(line)
    models = local_models(local_line(line))
    return [models[client] for client in members(line)]


def client_generator(line: OneShotLine) -> Files:
    """Return what a client's generator is trained on."""
    return {
        **settings_files(generators_folder(line), line.data),
        "data": data_files.data_file(line.data, "train"),
        "clients": data_files.clients_table(local_line(line)),
    }


def generated(line: OneShotLine) -> Files:
    """Return what images are generated with."""
    return {
        **settings_files(generated_folder(line), line.data),
        "generators": client_generators(line),
    }


def synthesised(line: OneShotLine) -> Files:
    """Return what the server generates images against, and what the student starts from."""
    return {
        **settings_files(generated_folder(line), line.data),
        "models": travelling_models(line),
        "start": student_start(line),
    }
