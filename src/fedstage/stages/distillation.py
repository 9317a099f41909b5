"""Stage `distillation`: an averaged model w_{t,k} learns from an ensemble; gives w*_{t,k}."""

from pathlib import Path
from typing import Any

import torch
from torch import nn

from fedstage.artefacts import Weights, load_tensors, save_tensors
from fedstage.config import Line
from fedstage.engine.bags import Samples
from fedstage.engine.batches import public_batches
from fedstage.engine.devices import prepare
from fedstage.engine.training import train
from fedstage.ensemble_trainers import Members, teacher_logits
from fedstage.errors import FedstageError
from fedstage.global_trainers.distillation import distillation_loss
from fedstage.global_trainers.drop_worst import average_anew, fused, teachers
from fedstage.global_trainers.early_stopping import early_stopping
from fedstage.global_trainers.swa import take, weight_average
from fedstage.lines import model_of
from fedstage.members import read_members
from fedstage.randomness import torch_generator
from fedstage.reading import (
    fill_model,
    new_model,
    read_info,
    read_labelled,
    read_line,
    read_public,
    state_of,
)
from fedstage.updates import read_updates

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
    trained, learnt = _teach(settings, model, images, teacher, about, notes, server_validation)
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


def _teach(
    settings: Line,
    model: nn.Module,
    images: Samples,
    teacher: torch.Tensor,
    about: dict[str, Any],
    notes: Notes,
    server_validation: Path | None,
) -> tuple[Weights, Notes]:
    """Train the student; return its weights, and notes of how it learnt."""
    server, numerics = settings.server, settings.numerics
    assert server is not None
    after_step, averages, best = None, None, None
    if server.swa is not None:
        after_step, averages = weight_average(model, server.swa)
    if server.early_stopping is not None:
        assert server_validation is not None, "the graph gives it to such a line"
        held = read_labelled(server_validation, None, images.device)
        after_step, best = early_stopping(
            model, server.early_stopping, server.steps, held, about, numerics
        )
    key = (settings.seed, "distillation", notes["round"], notes["group"])
    batches = torch_generator(*key, "batches")
    outcome = train(
        model,
        images,
        teacher,
        public_batches(len(images), server.batch_size, server.steps, batches),
        server,
        distillation_loss(server),
        about,
        torch_generator(*key, "augmentation"),
        numerics,
        after_step=after_step,
    )
    if outcome.diverged_at is not None:
        raise FedstageError(
            f"distillation, round {notes['round']}, group {notes['group']}: the loss is not finite "
            f"at step {outcome.diverged_at}; lower server.learning_rate = {server.learning_rate}"
        )
    if averages is not None:
        take(model, averages, images, about, numerics)
    learnt: Notes = {"loss": outcome.loss}
    if best is not None:
        return best.weights, learnt | {"steps": outcome.steps, "best_step": best.step}
    return state_of(model), learnt
