"""Scores of a run's models: of each round, of each client and class, and of what is forgotten."""

import logging
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from fedstage.algorithm.ensemble_trainers import Members, in_order, read_members, teacher_logits
from fedstage.algorithm.exchange.traffic import counts_sent
from fedstage.algorithm.measures.forgetting import RETENTION_SCHEMA, forgetting, percent_right
from fedstage.algorithm.measures.metrics import CLIENTS_SCHEMA, METRICS_SCHEMA, TEST, VALIDATION
from fedstage.algorithm.measures.model_metrics import (
    mean_metrics,
    model_metrics,
    of_classes,
    of_mixes,
    of_own,
)
from fedstage.algorithm.measures.scores import ClassCounts, score
from fedstage.data.bags import Samples
from fedstage.data.samples import read_counts, read_labelled, read_owned, read_test_clients
from fedstage.errors import FedstageError
from fedstage.models.loading import fill_model, new_model
from fedstage.plan.inputs import ClientAccuracyInputs, EvaluationInputs, RetentionInputs
from fedstage.plan.members import parse_evaluated
from fedstage.protocol.rounds import checkpoints, evaluated_rounds
from fedstage.settings.ensembles import EnsembleTrainer, GlobalModel, OneByOne
from fedstage.settings.recipes import Recipe
from fedstage.stages.inputs import begin, load_model, read_participants, read_scored
from fedstage.storage.tables import save_rows
from fedstage.storage.tensors import load_tensors, save_tensors
from fedstage.training.passes import compute_logits

_LOGGER = logging.getLogger(__name__)

Row = dict[str, Any]
#: Logits [n, classes], and for an ensemble the classes that its members predict, [members, n].
Predicted = tuple[torch.Tensor, torch.Tensor | None]
RoundScores = Iterator[tuple[int, dict[str, Any]]]


def evaluation(
    recipe: Recipe,
    read: EvaluationInputs[Path],
    *,
    evaluated: str,
    role: str,
    rounds: int,
    every: int,
    output: Path,
) -> None:
    """Write a row of metrics for each evaluated round.

    Parameters
    ----------
    evaluated : str
        ``global_model`` (`models` are the w*_{t,0}), or an ensemble such as ``aggregated_2`` or
        ``clients`` (`models` are the logits of its members, of all rounds), or ``each_client`` or
        ``split_model``, whose scores are a mean; `fedstage.plan.members` has the names.
    role : str
        ``test``, or ``validation``: the samples of `data` with this role in `clients`.
    rounds, every : int
        The last round, which is evaluated, and the interval of the other evaluated rounds. In some
        rounds all participants may be absent.
    """
    device, info = begin(recipe, read.info)
    scored = evaluated_rounds(rounds, every)
    images, labels, counts, owners = read_scored(recipe, read, role, device, info)
    tables = read_participants(read.participants)
    predicting = parse_evaluated(evaluated)
    if isinstance(predicting, OneByOne):
        scores = _one_by_one(evaluated, read.models, labels, counts, owners, tables)
    else:
        if isinstance(predicting, GlobalModel):
            predicted = _global_models(recipe, info, read.models, images)
        else:
            predicted = _ensembles(predicting, evaluated, read.models, scored)
        scores = (
            (round_, model_metrics(logits, labels, counts, owners, members))
            for round_, (logits, members) in zip(scored, predicted, strict=True)
        )
    rows = [
        {"round": round_, "evaluated": evaluated, "role": role, **row}
        | _of_participants(tables.get(round_, []), counts_sent(recipe, round_, info["classes"]))
        for round_, row in scores
    ]
    save_rows(output, rows, METRICS_SCHEMA)
    if role == "validation":  # test metrics are only for the end
        for row in rows:
            _LOGGER.info(
                "round %d: accuracy on validation samples %.2f %%, loss %.4f (%s)",
                row["round"], row["top1_accuracy"], row["loss"], output.absolute().parents[2].name,
            )  # fmt: skip


def _global_models(
    recipe: Recipe, info: dict[str, Any], paths: list[Path], images: Samples
) -> Iterator[Predicted]:
    model = new_model(recipe.model, info, images.device, recipe.numerics)
    for path in paths:
        fill_model(model, load_tensors(path)[0], path)
        yield compute_logits(model, images, info, recipe.numerics), None


def _ensembles(
    ensemble: EnsembleTrainer, name: str, paths: list[Path], rounds: list[int]
) -> Iterator[Predicted]:
    reach = checkpoints(ensemble)
    members = read_members(paths)
    for round_ in rounds:
        window: list[Members] = [part for part in members if round_ - reach < part.round <= round_]
        if not window:
            raise FedstageError(f"{name}, round {round_}: no member of the ensemble is left")
        classes = torch.cat([part.logits.argmax(2) for part in window])
        yield teacher_logits(ensemble, window), classes


def _one_by_one(
    evaluated: str,
    paths: list[Path],
    labels: torch.Tensor,
    counts: ClassCounts,
    owners: torch.Tensor | None,
    tables: dict[int, list[Row]],
) -> RoundScores:
    """Yield the mean scores of the participants' models, whose logits are in the files."""
    members = in_order(read_members(paths))
    for round_, rows in sorted(tables.items()):
        clients = [row["client"] for row in rows if not row["dropped"]]
        logits = [part.logits for part in members if part.round == round_]
        if not logits:
            raise FedstageError(f"{evaluated}, round {round_}: no client's model is left")
        models = zip(clients, torch.cat(logits).float(), strict=True)
        mixes = {client: counts.get(client, {}) for client in clients}
        yield round_, mean_metrics(sorted(models, key=itemgetter(0)), labels, mixes, owners)


def _of_participants(rows: list[Row], counts: int) -> Row:
    """Return the participants' number, training loss, and the most bytes that one of them moves.

    A participant that sends anything sends `counts` bytes more.
    """
    answered = [row for row in rows if row["loss"] is not None]
    loss = None
    if samples := sum(row["samples"] for row in answered):
        loss = sum(row["loss"] * row["samples"] for row in answered) / samples
    up = max((row["bytes_up"] for row in rows), default=0)
    down = max((row["bytes_down"] for row in rows), default=0)
    return {
        "participants": len(rows),
        "training_loss": loss,
        "bytes_up": up + counts if up else 0,
        "bytes_down": down,
    }


def client_accuracy(recipe: Recipe, read: ClientAccuracyInputs[Path], *, output: Path) -> None:
    """Write a row for each client and kind of accuracy, and a row for each class.

    Clients have test samples of their own where the partition is natural and the data set has the
    clients of its test samples. Elsewhere the accuracy on their own mix of classes is an estimate.
    """
    device, info = begin(recipe, read.info)
    trained = load_model(read.model, recipe.model, info, device, recipe.numerics)

    def logits_of(path: Path, chosen: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
        samples, labels = read_labelled(path, chosen, device)
        return compute_logits(trained, samples, info, recipe.numerics).cpu(), labels.cpu()

    rows = []
    if recipe.validation:
        samples, owners = read_owned(read.clients, "validation")
        predicted, labels = logits_of(read.data, samples)
        rows += of_own(VALIDATION, predicted.argmax(1) == labels, owners, recipe.clients)
    predicted, labels = logits_of(read.test, None)
    tested = read_test_clients(read.test, recipe.partition.name, recipe.clients)
    if tested is not None:
        rows += of_own(TEST, predicted.argmax(1) == labels, tested, recipe.clients)
    else:
        rows += of_mixes(score(predicted, labels), read_counts(read.histogram))
    save_rows(output, [*rows, *of_classes(predicted, labels)], CLIENTS_SCHEMA)


#: Labelled samples.
Labelled = tuple[Samples, torch.Tensor]


def retention(recipe: Recipe, read: RetentionInputs[Path], *, output: Path, right: Path) -> None:
    """Write a row of measures for each round; images are not augmented.

    The measures are defined in "Edge Bias in Federated Learning and its Solution by Buffered
    Knowledge Distillation". The paper does not specify the samples on which methods' new knowledge
    is compared: here these are the test samples, which all methods of a seed share.

    Parameters
    ----------
    output : Path
        The measures, `RETENTION_SCHEMA`.
    right : Path
        Which test samples the first and the last model classify correctly: `start` and `end`, bool.
    """
    device, info = begin(recipe, read.info)
    tables = read_participants(read.participants)
    samples, owners = read_owned(read.clients, "train")
    tested = read_labelled(read.test, None, device, info)
    model = new_model(recipe.model, info, device, recipe.numerics)

    def samples_of(round_: int) -> Labelled | None:
        took_part = torch.tensor([row["client"] for row in tables[round_]], dtype=torch.int64)
        chosen = samples[torch.isin(owners, took_part)]
        return read_labelled(read.data, chosen, device, info) if len(chosen) else None

    def judge(of: Labelled) -> torch.Tensor:
        """Return which samples the present model classifies correctly, bool [n]."""
        logits = compute_logits(model, of[0], info, recipe.numerics)
        return logits.argmax(1) == of[1].cpu()

    first, *later = read.models
    fill_model(model, load_tensors(first)[0], first)
    start = end = judge(tested)
    earlier: Labelled | None = None  # samples of the last participants
    before: torch.Tensor | None = None  # which of these the model before classified correctly
    rows = []
    for round_, path in enumerate(later, start=1):
        fill_model(model, load_tensors(path)[0], path)
        own, end = samples_of(round_), judge(tested)
        now = None if own is None else judge(own)
        after = None if earlier is None else judge(earlier)
        scores = {"distance": _distance(tables[round_]), "top1_accuracy": percent_right(end)}
        rows.append({"round": round_} | forgetting(now, before, after) | scores)
        earlier, before = (earlier, after) if own is None else (own, now)
    save_rows(output, rows, RETENTION_SCHEMA)
    save_tensors(right, {"start": start, "end": end}, {"rounds": len(rows)})


def _distance(rows: list[dict[str, Any]]) -> float | None:
    """Return the mean distance of a round's participants; None if there is none."""
    known = [row["distance"] for row in rows if row["distance"] is not None]
    return fmean(known) if known else None
