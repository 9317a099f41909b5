"""Moments of clients' features (GH-OFL): whose they are, where, and what their stages read.

As in `fedstage.plan.one_shot_sharing`, they belong to the line stripped of every setting that
cannot reach them: what the server makes of them, and who is forgotten.
"""

from functools import cache
from typing import Any

from fedstage.plan import data_files, one_shot_artefacts
from fedstage.plan.edges import Files, settings_files
from fedstage.plan.identity import moments_id
from fedstage.plan.one_shot_sharing import NO_CLIENT, learns_from_moments, local_line, members
from fedstage.plan.results import RESULTS
from fedstage.settings.one_shot import MomentsLine, OneShotLine

_OF_SAMPLES = (
    "data", "clients", "partition", "validation", "aggregator_fraction", "core", "seed", "start",
)  # fmt: skip


@cache
def measuring(line: OneShotLine) -> MomentsLine:
    """Return the line of the moments that a line's head is computed from."""
    local = local_line(line)
    read: dict[str, Any] = {name: getattr(local, name) for name in _OF_SAMPLES}
    plain = {"compile": False, "cuda_graphs": False}
    return MomentsLine.model_construct(
        **read,
        model=line.student or line.model,
        client=NO_CLIENT,
        numerics=local.numerics.model_copy(update=plain),
    )


def folder(line: OneShotLine) -> str:
    """Return the folder of the clients' moments."""
    return f"{RESULTS}/moments/{moments_id(measuring(line))}"


def client_files(line: OneShotLine) -> list[str]:
    """Return the moments of a line's members, in the order of clients."""
    return [f"{folder(line)}/client_{client}.safetensors" for client in members(line)]


def traffic_tables(line: OneShotLine) -> list[str]:
    """Return the table of what travels for a head of moments, if a line has one."""
    if not learns_from_moments(line):
        return []
    return [f"{one_shot_artefacts.student_folder(line)}/rounds.parquet"]


def feature_moments(line: OneShotLine) -> Files:
    """Return what a client measures: its samples, through the encoder that all have."""
    return {
        **settings_files(folder(line), line.data),
        "data": data_files.data_file(line.data, "train"),
        "clients": data_files.clients_table(local_line(line)),
        "start": one_shot_artefacts.student_start(line),
    }


def closed_form_model(line: OneShotLine) -> Files:
    """Return what a model with a head of moments is made of."""
    return {
        **settings_files(one_shot_artefacts.student_folder(line), line.data),
        "moments": client_files(line),
        "start": one_shot_artefacts.student_start(line),
    }
