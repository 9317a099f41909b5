"""Stage `distillation`: an averaged model w_{t,k} learns from an ensemble; gives w*_{t,k}."""

from pathlib import Path
from typing import Any

import torch

from fedstage.algorithm.ensemble_trainers import Members, teacher_logits
from fedstage.algorithm.ensemble_trainers.reading import read_members
from fedstage.algorithm.exchange.updates import read_updates
from fedstage.algorithm.global_trainers.distillation import distillation_loss
from fedstage.algorithm.global_trainers.drop_worst import average_anew, fused, teachers
from fedstage.algorithm.global_trainers.student import teach
from fedstage.data.samples import (
    fill_model,
    new_model,
    read_info,
    read_labelled,
    read_line,
    read_public,
)
from fedstage.plan.sharing import model_of
from fedstage.settings.lines import Line
from fedstage.storage.tensors import Weights, load_tensors, save_tensors
from fedstage.training.devices import prepare

Notes = dict[str, Any]


def distillation(
    *,
    line: Path,
    start: Path,
    logits: list[Path],
    judged: list[Path] | None = None,
    updates: list[Path] | None = None,
    public: Path,
    server_validation: Path | None = None,
    info: Path,
    output: Path,
) -> None:
    """Distil the ensemble whose members' logits are given into the model `start`.

    Parameters
    ----------
    judged, updates : list of Path, optional
        Where the worst clients are left out: what all clients say about the server's validation
        set, and the updates of the student's group, of which its start is averaged anew.
    server_validation : Path, optional
        The server's own labelled images, where clients or the student are judged by them.

    Raises
    ------
    FedstageError
        If the student diverges, or no member of the ensemble is left.
    """
    settings = read_line(line, Line)
    assert settings.server is not None, "checked by Line: a global trainer has server settings"
    assert settings.ensemble is not None, "checked by Line: a global trainer has an ensemble"
    server, about = settings.server, read_info(info)
    device = prepare(settings.numerics)
    weights, notes = load_tensors(start)
    members = read_members(logits)
    if server.drop_worst != "none":
        assert server_validation is not None, "the graph gives it to such a line"
        weights, members, dropped = _leave_out(
            settings, weights, notes, members, judged or [], updates or [], server_validation
        )
        notes = notes | {"dropped": dropped}
    teacher = teacher_logits(settings.ensemble, members).to(device)
    images = read_public(public, about, device)
    model = new_model(model_of(settings, notes["group"]), about, device, settings.numerics)
    fill_model(model, weights, start)
    trained, learnt = teach(
        model,
        images,
        teacher,
        distillation_loss(server),
        server,
        settings.numerics,
        about,
        (settings.seed, "distillation", notes["round"], notes["group"]),
        f"distillation, round {notes['round']}, group {notes['group']}",
        server_validation,
    )
    save_tensors(output, trained, notes | learnt)


def _leave_out(
    settings: Line,
    start: Weights,
    notes: Notes,
    members: list[Members],
    judged: list[Path],
    updates: list[Path],
    server_validation: Path,
) -> tuple[Weights, list[Members], int]:
    """Return the student's start and its teachers without the worst, and how many these are."""
    assert settings.server is not None
    _, labels = read_labelled(server_validation, None, torch.device("cpu"))
    kept = fused(read_members(judged), labels, settings.server.drop_worst)
    group = kept.averaged.get(notes["group"], [])
    weights = average_anew(start, read_updates(updates), group, settings.aggregation)
    return weights, teachers(members, kept.teaching), kept.dropped
