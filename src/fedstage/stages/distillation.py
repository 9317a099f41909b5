"""From ensembles to students: members' logits, labels made of them, and models that learn.

An ensemble is given by its logits or its models; without its worst clients (`judged`), by kept
labels, or on images that the server generates (`data_free`). Without public samples, the server's
model learns from features of clients' samples, or models take one another's heads. One file because
what teaches and what learns are read together.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from fedstage.algorithm.aggregation.averages import average_weights
from fedstage.algorithm.ensemble_trainers import Members, in_order, read_members, stack
from fedstage.algorithm.ensemble_trainers.sampling import draw
from fedstage.algorithm.exchange.caching import after_round
from fedstage.algorithm.exchange.updates import answered, part, place_of, read_updates
from fedstage.algorithm.global_trainers.data_free import counts_of, learn_without_data, trained_by
from fedstage.algorithm.global_trainers.drop_worst import average_of_kept, fused
from fedstage.algorithm.global_trainers.features import train_server, upload
from fedstage.algorithm.global_trainers.selection import select
from fedstage.algorithm.global_trainers.student import Taught
from fedstage.algorithm.global_trainers.students import (
    Student,
    kept_lesson,
    learn,
    lesson,
    live_targets,
    of_round,
    read_public_samples,
    read_student,
)
from fedstage.algorithm.global_trainers.task_arithmetic import merged
from fedstage.algorithm.global_trainers.teachers import Teacher, read_teachers
from fedstage.algorithm.global_trainers.transfers import targets_from
from fedstage.data.samples import read_counts, read_labelled
from fedstage.models.heads import HEAD, joined
from fedstage.models.loading import fill_model, new_model, parameter_names, state_of
from fedstage.models.parts import kept_by_clients
from fedstage.plan.inputs import (
    CachedLabelsInputs,
    DataFreeDistillationInputs,
    DistillationInputs,
    FeatureTrainingInputs,
    HeadSharingInputs,
    JudgedDistillationInputs,
    LabelDistillationInputs,
    LogitsInputs,
    SelectedLabelsInputs,
    StudentInputs,
)
from fedstage.plan.members import parse_sampled
from fedstage.protocol.groups import model_of
from fedstage.protocol.teaching import teaching_of
from fedstage.settings.ensembles import Bayesian
from fedstage.settings.recipes import Recipe
from fedstage.stages import Made
from fedstage.stages.inputs import Info, begin, load_model, read_own, read_unlabelled
from fedstage.storage.tensors import load_tensors, open_tensors, save_tensors
from fedstage.training.passes import compute_logits
from fedstage.weights import Tensors, Weights, renamed

# --- what teaches: predictions, and labels made of them -------------------------------------------


def logits(recipe: Recipe, read: LogitsInputs[Path], *, members: str, output: Path) -> None:
    """Write logits [members, n, classes] with each member's number of training samples.

    Parameters
    ----------
    members : str
        ``aggregated``: `models` is w_{t,k}; ``clients``: `models` are the updates of the group; a
        kind such as ``gaussian_10``: models drawn from these updates, with `aggregated` w_{t,k} and
        `start` the model that the round started from; ``own``: what the participants predict with,
        by their updates and `aggregated`; ``split``: the extractors of the models of ``clients``
        followed by `server_model`.
    """
    device, info = begin(recipe, read.info)
    images = read_unlabelled(read, "validation", info, device)
    drawn = parse_sampled(members)
    if drawn is None:
        weighted, metadata = _read_members(members, read.models)
    else:
        weighted, metadata = _draw_members(recipe, drawn, read, info)
    architecture = model_of(recipe, metadata["group"])
    model = new_model(architecture, info, device, recipe.numerics)
    if members == "own":
        weighted = _own_models(recipe, read, kept_by_clients(recipe, model))
    asked = model
    if read.server_model is not None:
        behind = (read.server_model, recipe.model, info, device, recipe.numerics)
        asked = joined(model, load_model(*behind))
    outputs = []
    for path, weights in weighted:
        fill_model(model, weights, path)
        outputs.append(compute_logits(asked, images, info, recipe.numerics))
    none = torch.empty(0, len(images), info["classes"])
    stacked = torch.stack(outputs) if outputs else none
    save_tensors(output, {"logits": stacked}, metadata | {"members": members})


def _read_members(
    members: str, paths: list[Path]
) -> tuple[list[tuple[Path, Tensors]], dict[str, Any]]:
    """Return the members' weights with their files, and the metadata of their logits."""
    if members == "aggregated":
        weights, metadata = load_tensors(paths[0])
        return [(paths[0], weights)], metadata | {"samples": [metadata["samples"]]}
    valid = answered(read_updates(paths))
    samples = [update.metadata["samples"] for update in valid]
    whose = [update.metadata["client"] for update in valid]
    members_of_group = [(update.path, update.weights) for update in valid]
    return members_of_group, place_of(paths[0]) | {"samples": samples, "clients": whose}


def _own_models(
    recipe: Recipe, read: LogitsInputs[Path], kept: list[str]
) -> list[tuple[Path, Tensors]]:
    """Return the global model with each participant's parts, or its own model."""
    valid = answered(read_updates(read.models))
    if recipe.local.has_own_model:
        return [(update.path, update.kept) for update in valid]
    assert read.aggregated is not None, "the graph gives it to such members"
    common, _ = load_tensors(read.aggregated)
    parts = {name: name for name in kept}
    return [(update.path, common | dict(renamed(update.weights, parts))) for update in valid]


def _draw_members(
    recipe: Recipe, drawn: Bayesian, read: LogitsInputs[Path], info: Info
) -> tuple[list[tuple[Path, Tensors]], dict[str, Any]]:
    """Return models drawn from the clients' distribution; none if all clients diverged.

    Each has the file of the averaged model, and counts for the training samples of all clients.
    """
    assert read.aggregated is not None, "the graph gives it to members that are drawn"
    valid = answered(read_updates(read.models))
    mean, metadata = load_tensors(read.aggregated)
    if not valid:
        return [], metadata | {"samples": []}
    uniform = recipe.aggregation.weights == "uniform"
    models = draw(
        drawn,
        [update.weights for update in valid],
        [1.0 if uniform else float(update.metadata["samples"]) for update in valid],
        mean,
        load_tensors(read.start)[0] if read.start else None,
        parameter_names(model_of(recipe, metadata["group"]), info),
        (recipe.seed, "logits", metadata["round"], metadata["group"]),
    )
    samples = [metadata["samples"]] * len(models)
    return [(read.aggregated, model) for model in models], metadata | {"samples": samples}


def cached_labels(
    recipe: Recipe, read: CachedLabelsInputs[Path], *, round_: int, output: Path
) -> None:
    """Write the targets of each public sample, ``labels`` [n, ...].

    For samples that clients are asked for in this round, targets follow from the clients' logits,
    by the run's `ensemble` and `distillation`. For other samples they stay unchanged, and are zero
    before the first time.
    """
    new = targets_from(teaching_of(recipe), read_members(read.logits))
    asked, _ = after_round(recipe, len(new), round_)
    labels = load_tensors(read.before)[0]["labels"] if read.before else torch.zeros_like(new)
    labels[asked] = new[asked]
    save_tensors(output, {"labels": labels}, {"round": round_, "asked": len(asked)})


def selected_labels(
    recipe: Recipe, read: SelectedLabelsInputs[Path], *, round_: int, output: Path
) -> None:
    """Write ``labels`` [n, 2 + C] of the `fedgems` loss, and ``pool`` [n, C] with ``pooled``."""
    device, info = begin(recipe, read.info)
    images, labels = read_labelled(read.public, None, device, info)
    model = load_model(read.start, recipe.model, info, device, recipe.numerics)
    own = compute_logits(model, images, info, recipe.numerics)
    members = stack(in_order(read_members(read.logits))).float()
    pool, pooled = torch.zeros_like(own), torch.zeros(len(own), dtype=torch.bool)
    if read.before:
        known = load_tensors(read.before)[0]
        pool, pooled = known["pool"], known["pooled"]
    chosen = select(own, members, labels.cpu(), pool, pooled)
    tensors = {"labels": chosen.targets, "pool": chosen.pool, "pooled": chosen.pooled}
    save_tensors(output, tensors, {"round": round_})


# --- what learns ----------------------------------------------------------------------------------
#
# Stages in which models learn from others: students, the server's model, and shared heads.
#
# An ensemble is given by its logits or its models; without its worst clients (`judged`), by kept
# labels, or on images that the server generates (`data_free`). Without public samples, the server's
# model learns from features of clients' samples, or models take one another's heads.


def _taught(
    student: Student,
    read: StudentInputs[Path],
    members: Sequence[Members],
    models: Sequence[Teacher] = (),
) -> Taught:
    """Return what a student learns about public samples from logits, or else from models."""
    recipe, round_ = student.config, student.round
    images, labels = read_public_samples(student, read)
    if members:
        return lesson(recipe, members, images, round_, labels)
    return of_round(recipe, Taught(images, None, labels, live_targets(recipe, models)), round_)


def distillation(
    recipe: Recipe, read: DistillationInputs[Path], *, round_: int, group: int, output: Path
) -> None:
    """Distil an ensemble, given by its members' logits, their models or both.

    Models see the student's images, or provide their features. `distillation` sets what is learnt.
    """
    device, info = begin(recipe, read.info)
    student = read_student(recipe, read.start, round_, group, info, device)
    models = read_teachers(recipe, read.members, info, device)
    members, validation = read_members(read.logits, read.odds), read.server_validation
    arithmetic = teaching_of(recipe).server.task_arithmetic
    if arithmetic is None:
        learnt = learn(student, _taught(student, read, members, models), validation, models)
    else:
        assert validation is not None, "the graph gives it to such a recipe"
        parts = [_taught(student, read, [one]) for one in in_order(members)]
        weights, metadata = zip(*(learn(student, part, validation) for part in parts), strict=True)
        best, shares = merged(student, weights, arithmetic.parts, validation)
        learnt = best, metadata[-1] | {"merged": shares}
    save_tensors(output, *learnt)


def judged_distillation(
    recipe: Recipe, read: JudgedDistillationInputs[Path], *, round_: int, group: int, output: Path
) -> None:
    """Distil the clients that the server's labelled images do not reject, into their average."""
    device, info = begin(recipe, read.info)
    _, truth = read_labelled(read.server_validation, None, torch.device("cpu"))
    kept = fused(read_members(read.judged), truth, teaching_of(recipe).server.drop_worst)
    student = read_student(recipe, read.start, round_, group, info, device)
    received, averaged = read_updates(read.updates), kept.averaged.get(group, [])
    student = replace(
        student,
        weights=average_of_kept(student.weights, received, averaged, recipe.aggregation),
        metadata=student.metadata | {"dropped": kept.dropped},
    )
    models = kept.models(read_teachers(recipe, read.members, info, device))
    taught = _taught(student, read, kept.members(read_members(read.logits)), models)
    save_tensors(output, *learn(student, taught, read.server_validation, models))


def label_distillation(
    recipe: Recipe, read: LabelDistillationInputs[Path], *, round_: int, group: int, output: Path
) -> None:
    """Teach the server's model the labels of the stages `cached_labels` or `selected_labels`."""
    device, info = begin(recipe, read.info)
    student = read_student(recipe, read.start, round_, group, info, device)
    images, labels = read_public_samples(student, read)
    taught = kept_lesson(recipe, read.labels, images, round_, labels)
    save_tensors(output, *learn(student, taught, read.server_validation))


def data_free_distillation(
    recipe: Recipe, read: DataFreeDistillationInputs[Path], made: Made, *, round_: int, group: int
) -> None:
    """Train a student and the generator of its images in turn; write both."""
    device, info = begin(recipe, read.info)
    student = read_student(recipe, read.start, round_, group, info, device)
    live = read_teachers(recipe, read.members, info, device)
    behind = [trained_by(one) for one in read.participants] or [one.clients for one in live]
    counts = counts_of(behind, read_counts(read.histogram), int(info["classes"]))
    model = student.model()
    generator, learnt = learn_without_data(student, model, live, counts, read.generator)
    save_tensors(made["new_generator"], generator, {"round": round_, "group": group})
    save_tensors(made["output"], state_of(model), student.metadata | learnt)


def feature_training(
    recipe: Recipe, read: FeatureTrainingInputs[Path], *, round_: int, group: int, output: Path
) -> None:
    """Train the server's model `start` on what the participants of a round send.

    Clients and server are on one machine here. The features, which are large, are therefore not
    stored but computed from the updates and the clients' samples. If no participant is left, the
    model stays unchanged.
    """
    device, info = begin(recipe, read.info)
    received = answered(read_updates(read.updates))
    learnt: dict[str, float] = {}
    if received:
        uploads = []
        for update in received:
            samples, labels = read_own(read, update.metadata["client"], device, info)
            architecture = model_of(recipe, update.metadata["group"])
            model = new_model(architecture, info, device, recipe.numerics)
            fill_model(model, update.weights, update.path)
            uploads.append(upload(model, samples, labels, recipe, info))
        model = load_model(read.start, recipe.model, info, device, recipe.numerics)
        weights, learnt = train_server(model, uploads, recipe, info, round_)
    else:
        weights, _ = load_tensors(read.start)
    save_tensors(output, weights, {"round": round_, "group": group} | learnt)


def head_sharing(
    recipe: Recipe, read: HeadSharingInputs[Path], *, round_: int, group: int, output: Path
) -> None:
    """Write a model with the plain mean of the heads of others, H = 1/m sum_k h_k (Fed-ET).

    On the way up these are the participants' heads (section 3.2, step 1), on the way down the head
    of the server's model (step 3). Absent participants and dropped updates have none; if there is
    none, the model keeps its own.
    """
    weights, metadata = load_tensors(read.model)
    others = [head for head in map(_head_of, read.heads) if head]
    if others:
        weights = weights | average_weights(others, [1.0] * len(others))
    save_tensors(output, weights, metadata | {"round": round_, "group": group})


def _head_of(path: Path) -> Weights:
    """Return the tensors of a model's head, or an update's; empty if it was dropped."""
    tensors, _ = open_tensors(path)
    model = part(tensors, "model/") or tensors
    return {name: model[name] for name in model if name.startswith(f"{HEAD}.")}
