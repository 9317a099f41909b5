"""Stage `distillation`: an averaged model w_{t,k} learns from an ensemble; gives w*_{t,k}."""

from pathlib import Path
from typing import Any

import torch

from fedstage.algorithm.ensemble_trainers import Members, read_members
from fedstage.algorithm.exchange.updates import read_updates
from fedstage.algorithm.global_trainers.drop_worst import average_anew, fused, teachers
from fedstage.algorithm.global_trainers.lesson import lesson
from fedstage.algorithm.global_trainers.student import teach
from fedstage.algorithm.global_trainers.transfers import transfer
from fedstage.data.samples import read_labelled, read_public
from fedstage.models.loading import fill_model, new_model
from fedstage.settings.groups import model_of
from fedstage.settings.lines import Line
from fedstage.stages.inputs import begin
from fedstage.storage.tensors import load_tensors, save_tensors
from fedstage.weights import Weights


def distillation(
    *,
    line: Path,
    round: int,
    group: int,
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

    What the student learns from them is the line's `distillation`.

    Parameters
    ----------
    judged, updates : list of Path, optional
        Where the worst clients are left out: the logits of all clients on the server's validation
        set, and the updates of the student's group, of which its start is averaged anew.
    server_validation : Path, optional
        The server's own labelled images, where clients or the student are scored on them.
    """
    settings, device, dataset_info = begin(line, Line, info)
    assert settings.server is not None, "checked by Line: a global trainer has server settings"
    assert settings.ensemble is not None, "checked by Line: a global trainer has an ensemble"
    weights, metadata = load_tensors(start)
    # The server's own model starts from that of the round before.
    metadata = metadata | {"round": round, "group": group}
    members = read_members(logits)
    if settings.server.drop_worst != "none":
        assert server_validation is not None, "the graph gives it to such a line"
        weights, members, dropped = _leave_out(
            settings, weights, metadata, members, judged or [], updates or [], server_validation
        )
        metadata = metadata | {"dropped": dropped}
    images, targets = lesson(settings, members, read_public(public, dataset_info, device), round)
    model = new_model(model_of(settings, group), dataset_info, device, settings.numerics)
    fill_model(model, weights, start)
    trained, learnt = teach(
        model,
        images,
        targets,
        transfer(settings.distillation).loss(settings.distillation, settings.server),
        settings.server,
        settings.numerics,
        dataset_info,
        (settings.seed, "distillation", round, group),
        f"distillation, round {round}, group {group}",
        server_validation,
    )
    save_tensors(output, trained, metadata | learnt)


def _leave_out(
    settings: Line,
    start: Weights,
    metadata: dict[str, Any],
    members: list[Members],
    judged: list[Path],
    updates: list[Path],
    server_validation: Path,
) -> tuple[Weights, list[Members], int]:
    """Return the student's start and its teachers without the worst, and how many these are."""
    assert settings.server is not None
    _, labels = read_labelled(server_validation, None, torch.device("cpu"))
    kept = fused(read_members(judged), labels, settings.server.drop_worst)
    group = kept.averaged.get(metadata["group"], [])
    weights = average_anew(start, read_updates(updates), group, settings.aggregation)
    return weights, teachers(members, kept.teaching), kept.dropped
