"""The edges of the DAG: which files each stage of a training line reads.

One function for each equation returns the inputs of its stage by option: a path, or a list of
paths, empty if nothing is read. Snakemake's rules, segments, the records of `fedstage why`,
properties and simulations all take their edges from here.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from fedstage.plan import artefacts, data_files, students
from fedstage.plan.members import parse_evaluated
from fedstage.plan.rounds import evaluated_rounds
from fedstage.plan.sharing import hears_server, takes_changes, takes_features, was_taught
from fedstage.plan.staleness import base_round
from fedstage.settings.data import Data
from fedstage.settings.groups import client_groups, group_slots
from fedstage.settings.lines import Line, LocalLine

#: Files by the option of the stage that reads them.
Files = dict[str, str | list[str]]

_PLACE = re.compile(r"(results/training/[^/]+)/round_(\d{4})/group_(\d+)/(.+)\.(?:\w+)")
_STAGES = {
    "aggregated": "aggregation",
    "participants": "aggregation",
    "state": "aggregation",
    "distilled": "distillation",
    "generator": "distillation",
    "with_head": "head_transfer",
    "trained": "feature_training",
    "cached_labels": "cached_labels",
    "selected_labels": "selected_labels",
}


def settings_files(folder: str, data: Data) -> Files:
    """Return the files of settings that all stages of a line read: line.yaml and the data's."""
    return {"line": f"{folder}/line.yaml", "info": data_files.data_file(data, "info")}


def local_training(line: Line, round: int, group: int, slot: int) -> Files:
    """Return what the participant in a slot of a group trains from.

    Who starts from w*_{b,k} reads what was there after round b; in step, that is round t - 1.
    """
    base = base_round(line, round, slot)
    hears = (takes_features(line, 0) or hears_server(line)) and was_taught(line, base, 0)
    return {
        **_settings(line),
        "data": data_files.data_file(line.data, "train"),
        "clients": data_files.clients_table(line),
        "participation": data_files.participation_table(line, round),
        "start": artefacts.global_model(line, base, group),
        "state": artefacts.states_before(line, base + 1, group),
        "said": (said := artefacts.said_before(line, base + 1)),
        "public": artefacts.public_file(line) if said or (hears and hears_server(line)) else [],
        "server_model": server_model(line, base) if hears else [],
        "history": (past := artefacts.history(line, base, group)),
        "server_validation": (artefacts.judging_images(line) if past else None) or [],
    }


def aggregation(line: Line, round: int, group: int) -> Files:
    """Return what w_{t,k} is averaged from."""
    return {
        **_settings(line),
        "start": artefacts.global_model(line, round - 1, group),
        "updates": artefacts.updates(line, round, group),
        "bases": bases(line, round, group) if takes_changes(line) else [],
        "state": _if_any(artefacts.own_state_before(line, round, group)),
        "public": _if_any(artefacts.aggregation_images(line)),
    }


def bases(line: Line, round: int, group: int) -> list[str]:
    """Return the model that each update of a group started from, in the order of slots."""
    rounds = (base_round(line, round, slot) for slot in group_slots(line, group))
    return [artefacts.global_model(line, base, group) for base in rounds]


def logits(line: Line, round: int, group: int, members: str, images: str) -> Files:
    """Return what the logits of members of one kind, of a round and group, are computed from."""
    read = artefacts.member_models(line, round, group, members)
    return {
        **_settings(line),
        "models": list(read.models),
        "aggregated": read.aggregated or [],
        "start": read.start or [],
        "server_model": read.server or [],
        "data": data_files.samples_file(line, images),
        "clients": data_files.clients_table(line) if images == "validation" else [],
    }


def cached_labels(line: Line, round: int, group: int) -> Files:
    """Return what the labels of public samples after a round are made of: news, what was known."""
    return {
        "line": artefacts.line_file(line),
        "logits": artefacts.teacher_logits(line, round),
        "before": _if_any(artefacts.cached_labels(line, round - 1)),
    }


def selected_labels(line: Line, round: int, group: int) -> Files:
    """Return what the server's model selects by: what it was, what clients say, what it knew."""
    return _settings(line) | {
        "start": students.student_start(line, round, group),
        "logits": artefacts.teacher_logits(line, round),
        "public": artefacts.public_file(line),
        "before": _if_any(students.selected_labels(line, round - 1)),
    }


def distillation(line: Line, round: int, group: int) -> Files:
    """Return what w*_{t,k} is distilled from."""
    return {
        **_settings(line),
        "start": students.student_start(line, round, group),
        "logits": students.logits_of_teachers(line, round),
        "members": students.models_of_teachers(line, round),
        "judged": artefacts.drop_worst_logits(line, round),
        "updates": artefacts.fused_updates(line, round, group),
        **students.images_of_students(line, round, group),
        "server_validation": artefacts.server_validation(line) or [],
    }


def head_transfer(line: Line, round: int, group: int) -> Files:
    """Return a model, and those whose heads it takes: Fed-ET's transfer up, or down.

    The server's model takes those of all participants before it is distilled, the others its own.
    """
    if group in client_groups(line):
        model, heads = artefacts.aggregated_model(line, round, group), [server_model(line, round)]
    else:
        model = artefacts.global_model(line, round - 1, group)
        groups = client_groups(line)
        heads = [path for other in groups for path in artefacts.updates(line, round, other)]
    return {"line": artefacts.line_file(line), "model": model, "heads": heads}


def feature_training(line: Line, round: int, group: int) -> Files:
    """Return what the server's model learns from: all participants' models and samples (FedGKT).

    The features that a client would send are computed from these, where they are needed.
    """
    groups = client_groups(line)
    return {
        **_settings(line),
        "start": artefacts.global_model(line, round - 1, group),
        "updates": [path for other in groups for path in artefacts.updates(line, round, other)],
        "data": data_files.data_file(line.data, "train"),
        "clients": data_files.clients_table(line),
    }


def server_model(line: Line, round: int) -> str:
    """Return the server's model after a round, which is that of group 0."""
    return artefacts.global_model(line, round, 0)


def evaluation(line: Line, evaluated: str, role: str, rounds: int, every: int) -> Files:
    """Return what the scores of global models, or of an ensemble, are computed from."""
    scored = evaluated_rounds(rounds, every)
    if evaluated == "global_model":
        models = [artefacts.global_model(line, round, 0) for round in scored]
    else:
        ensemble = parse_evaluated(evaluated)
        members = (artefacts.member_logits(line, round, ensemble, role) for round in scored)
        models = list(dict.fromkeys(path for paths in members for path in paths))
    groups = client_groups(line)
    return {
        **_settings(line),
        "models": models,
        "data": data_files.samples_file(line, role),
        "clients": data_files.clients_table(line),
        "histogram": data_files.label_histogram(line),
        "participants": [
            artefacts.participants_table(line, round, group) for round in scored for group in groups
        ],
    }


def retention(line: Line, rounds: int) -> Files:
    """Return what is measured of forgetting: the main model after each round, its start included.

    Participants, of all groups, say on whose samples.
    """
    numbers = range(1, rounds + 1)
    return {
        **_settings(line),
        "models": [artefacts.global_model(line, round, 0) for round in (0, *numbers)],
        "data": data_files.data_file(line.data, "train"),
        "test": data_files.data_file(line.data, "test"),
        "clients": data_files.clients_table(line),
        "participants": [
            artefacts.participants_table(line, round, group)
            for round in numbers
            for group in client_groups(line)
        ],
    }


def client_accuracy(line: Line, rounds: int) -> Files:
    """Return what the accuracies of the last main model by client and class are computed from."""
    return {
        **_settings(line),
        "model": artefacts.global_model(line, rounds, 0),
        "data": data_files.data_file(line.data, "train"),
        "test": data_files.data_file(line.data, "test"),
        "clients": data_files.clients_table(line),
        "histogram": data_files.label_histogram(line),
    }


def _settings(line: Line) -> Files:
    return settings_files(artefacts.line_folder(line), line.data)


def core(line: Line | LocalLine) -> Files:
    """Return what the server's own samples are taken from."""
    return {
        "data": data_files.data_file(line.data, "train"),
        "clients": data_files.clients_table(line),
        "info": data_files.data_file(line.data, "info"),
    }


def participation(line: Line) -> Files:
    """Return what participants are drawn by: the clients' samples, or nothing."""
    by_samples = line.participation == "by_samples"
    return {"histogram": data_files.label_histogram(line) if by_samples else []}


def _if_any(files: list[str]) -> str | list[str]:
    """Return the only file, or nothing."""
    return files[0] if files else []


# --- from a file to its equation ------------------------------------------------------------------


@dataclass(frozen=True)
class Origin:
    """The place of a file in a training line.

    Its `stage` makes it in a round t and group k of the line with this `folder`; `name` is its name
    below the group's folder, without suffix.
    """

    stage: str
    folder: str
    round: int
    group: int
    name: str


def find_origin(file: str) -> Origin | None:
    """Return the place of ``results/training/...``, None outside the rounds of a training line."""
    match = _PLACE.fullmatch(file)
    if match is None:
        return None
    folder, round, group, name = match.groups()
    stage = "logits" if name.startswith("logits/") else _STAGES.get(name)
    if name.startswith("slot_"):
        stage = "local_training"
    return Origin(stage, folder, int(round), int(group), name) if stage else None


def read_by(line: Line, origin: Origin) -> dict[str, list[str]]:
    """Return the files that the equation of a file of this line reads, by option of its stage."""
    place = (line, origin.round, origin.group)
    match origin.stage:
        case "local_training":
            slot = int(origin.name.removeprefix("slot_"))
            return as_lists(local_training(*place, slot))
        case "aggregation":
            return as_lists(aggregation(*place))
        case "distillation":
            return as_lists(distillation(*place))
        case "head_transfer":
            return as_lists(head_transfer(*place))
        case "feature_training":
            return as_lists(feature_training(*place))
        case "cached_labels":
            return as_lists(cached_labels(*place))
        case "selected_labels":
            return as_lists(selected_labels(*place))
    members, _, images = origin.name.removeprefix("logits/").partition("-")
    return as_lists(logits(*place, members, images))


def as_lists(files: Mapping[str, str | list[str]]) -> dict[str, list[str]]:
    """Return files by option, each a list, without the options that have none."""
    listed = {name: [paths] if isinstance(paths, str) else paths for name, paths in files.items()}
    return {name: paths for name, paths in listed.items() if paths}
