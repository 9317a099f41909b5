"""Stage `distillation`: an averaged model w_{t,k} learns from an ensemble; gives w*_{t,k}."""

from pathlib import Path
from typing import Any

import torch

from fedstage.algorithm.ensemble_trainers import Members, read_members
from fedstage.algorithm.exchange.updates import read_updates
from fedstage.algorithm.global_trainers.data_free import learn_without_data
from fedstage.algorithm.global_trainers.drop_worst import average_anew, fused, teachers
from fedstage.algorithm.global_trainers.lesson import lesson, live_targets, of_round, read_lesson
from fedstage.algorithm.global_trainers.student import Taught, teach
from fedstage.algorithm.global_trainers.teachers import read_teachers
from fedstage.algorithm.global_trainers.transfers import transfer
from fedstage.data.label_counts import read_counts
from fedstage.data.samples import read_labelled, read_public
from fedstage.models.loading import fill_model, new_model, state_of
from fedstage.settings.exchange import caches_labels, receives_server_logits
from fedstage.settings.groups import model_of
from fedstage.settings.lines import Line
from fedstage.settings.server import has_live_teachers, in_round
from fedstage.stages.inputs import begin
from fedstage.storage.tensors import load_tensors, save_tensors
from fedstage.weights import Weights


def distillation(
    *,
    line: Path,
    round: int,
    group: int,
    start: Path,
    logits: list[Path] | None = None,
    members: list[Path] | None = None,
    judged: list[Path] | None = None,
    updates: list[Path] | None = None,
    public: Path | None = None,
    odds: Path | None = None,
    histogram: Path | None = None,
    generator: Path | None = None,
    server_validation: Path | None = None,
    info: Path,
    output: Path,
    new_generator: Path | None = None,
) -> None:
    """Distil the ensemble whose members, or their logits, are given into the model `start`.

    What the student learns from them is the line's `distillation`, of public images or those of the
    line's generator.

    Parameters
    ----------
    logits, members : list of Path, optional
        The members' logits on the public images, or the labels that are kept of them; their models,
        where the student learns from their feature maps, or they compute logits of the images that
        it sees.
    odds : Path, optional
        Log odds [clients, n] on the public images, by which votes are weighted.
    judged, updates : list of Path, optional
        Where the worst clients are left out: the logits of all clients on the server's validation
        set, and the updates of the student's group, of which its start is averaged anew.
    histogram, generator : Path, optional
        Where images are generated: the clients' label counts, and the generator as the student of
        an earlier round has left it.
    server_validation : Path, optional
        The server's own labelled images, where clients or the student are scored on them.
    new_generator : Path, optional
        Output: the generator as this student leaves it.
    """
    settings, device, dataset_info = begin(line, Line, info)
    assert settings.server is not None, "checked by Line: a global trainer has server settings"
    assert settings.global_trainer is not None, "the graph has no student otherwise"
    weights, metadata = load_tensors(start)
    if settings.global_trainer.starts_from == "previous":
        metadata = {}  # of another round, or of what the line starts from
    # The server's own model starts from that of the round before.
    metadata = metadata | {"round": round, "group": group}
    kept = caches_labels(settings) or receives_server_logits(settings)
    said = read_members(logits, odds) if logits and not kept else []
    if settings.server.drop_worst != "none":
        assert server_validation is not None, "the graph gives it to such a line"
        weights, said, dropped = _leave_out(
            settings, weights, metadata, said, judged or [], updates or [], server_validation
        )
        metadata = metadata | {"dropped": dropped}
    live = read_teachers(settings, members, dataset_info, device) if members else []
    model = new_model(model_of(settings, group), dataset_info, device, settings.numerics)
    fill_model(model, weights, start)
    if new_generator is not None:
        assert histogram is not None, "the graph gives it to such a line"
        counts = read_counts(histogram)
        net, learnt = learn_without_data(
            settings, model, live, counts, dataset_info, generator, round, group
        )
        save_tensors(new_generator, state_of(net), {"round": round, "group": group})
        save_tensors(output, state_of(model), metadata | learnt)
        return
    assert public is not None, "the graph gives it to such a line"
    images = read_public(public, dataset_info, device)
    labels = read_labelled(public, None, device)[1] if settings.server.labels else None
    if has_live_teachers(settings.server):
        whole = Taught(images, None, labels, live_targets(settings, live))
        taught = of_round(settings, whole, round)
    elif kept:
        taught = read_lesson(settings, logits or [], images, round, labels)
    else:
        taught = lesson(settings, said, images, round, labels)
    trained, learnt = teach(
        model,
        taught,
        transfer(settings.distillation).loss(settings.distillation, settings.server),
        in_round(settings.server, round),
        settings.numerics,
        dataset_info,
        (settings.seed, "distillation", round, group),
        f"distillation, round {round}, group {group}",
        teachers=live,
        server_validation=server_validation,
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
