"""What is measured of runs in rounds: accuracy, what is forgotten, accuracy by client and class."""

from itertools import product

from fedstage.plan import data_files
from fedstage.plan.graph import File, Files, Stage
from fedstage.plan.members import parse_evaluated
from fedstage.plan.rounds import evaluated_rounds
from fedstage.plan.training import global_model, member_logits, participants_table
from fedstage.plan.training_folder import FOLDER, info, teaching
from fedstage.settings.groups import client_groups
from fedstage.settings.lines import Line


def _clients(config: Line) -> Files:
    """Return the data set's description, and the partition."""
    return {**info(config), "clients": data_files.clients_table(config)}


def _evaluation(config: Line, evaluated: str, role: str, rounds: int, every: int) -> Files:
    """Return what the scores of global models, or of an ensemble, are computed from."""
    scored = evaluated_rounds(rounds, every)
    if evaluated == "global_model":
        models = [global_model(config, round, 0) for round in scored]
    else:
        ensemble = parse_evaluated(evaluated)
        members = (member_logits(config, round, ensemble, role) for round in scored)
        models = list(dict.fromkeys(path for paths in members for path in paths))
    return {
        **_clients(config),
        "models": models,
        "data": data_files.samples_file(config, role),
        "histogram": data_files.label_histogram(config),
        "participants": _participants(config, scored),
    }


def _participants(config: Line, rounds: list[int]) -> list[File]:
    places = product(rounds, client_groups(config))
    return [participants_table(config, round, group) for round, group in places]


EVALUATION = Stage(
    "evaluation",
    FOLDER,
    {"output": "metrics/{evaluated}-{role}/rounds_{rounds:04d}_every_{every}.parquet"},
    _evaluation,
    place=("evaluated", "role", "rounds", "every"),
    reads=teaching,
)


def _retention(config: Line, rounds: int) -> Files:
    """Return what is measured of forgetting: the main model after each round, its start included.

    Participants, of all groups, tell on whose samples.
    """
    return {
        **_clients(config),
        "models": [global_model(config, round, 0) for round in range(rounds + 1)],
        "data": data_files.data_file(config.data, "train"),
        "test": data_files.data_file(config.data, "test"),
        "participants": _participants(config, list(range(1, rounds + 1))),
    }


RETENTION = Stage(
    "retention",
    FOLDER,
    {
        "output": "metrics/retention/rounds_{rounds:04d}.parquet",
        "right": "metrics/retention/rounds_{rounds:04d}.safetensors",
    },
    _retention,
    place=("rounds",),
    reads=teaching,
)


def _client_accuracy(config: Line, rounds: int) -> Files:
    """Return what the accuracies of the last main model by client and class are computed from."""
    return {
        **_clients(config),
        "model": global_model(config, rounds, 0),
        "data": data_files.data_file(config.data, "train"),
        "test": data_files.data_file(config.data, "test"),
        "histogram": data_files.label_histogram(config),
    }


CLIENT_ACCURACY = Stage(
    "client_accuracy",
    FOLDER,
    {"output": "metrics/clients/rounds_{rounds:04d}.parquet"},
    _client_accuracy,
    place=("rounds",),
    reads=teaching,
)
