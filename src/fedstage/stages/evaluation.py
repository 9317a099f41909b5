"""Stage `evaluation`: score a recipe's global models, or an ensemble, in all its rounds at once."""

import logging
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any

import torch

from fedstage.algorithm.ensemble_trainers import Members, in_order, read_members, teacher_logits
from fedstage.algorithm.exchange.traffic import counts_sent
from fedstage.algorithm.measures.metrics import METRICS_SCHEMA
from fedstage.algorithm.measures.model_metrics import mean_metrics, model_metrics
from fedstage.algorithm.measures.scores import ClassCounts, accuracy_on_own, score
from fedstage.data.bags import Samples
from fedstage.data.label_counts import read_counts
from fedstage.errors import FedstageError
from fedstage.models.loading import fill_model, new_model
from fedstage.plan.inputs import EvaluationInputs
from fedstage.plan.members import parse_evaluated
from fedstage.protocol.rounds import checkpoints, evaluated_rounds
from fedstage.settings.ensembles import EnsembleTrainer, GlobalModel, OneByOne
from fedstage.settings.recipes import Recipe
from fedstage.stages.inputs import begin, read_evaluated, read_owners, read_participants
from fedstage.storage.tables import save_rows
from fedstage.storage.tensors import load_tensors
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
    images, labels = read_evaluated(read.data, read.clients, role, device, info)
    counts, owners = read_counts(read.histogram), read_owners(read.data, role, recipe)
    tables = read_participants(read.participants)
    classes = int(info["classes"])
    traffic = {
        round_: _traffic(tables.get(round_, []), counts_sent(recipe, round_, classes))
        for round_ in scored
    }
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
        {"round": round_, "evaluated": evaluated, "role": role} | row | traffic[round_]
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
    members, labels = in_order(read_members(paths)), labels.cpu()
    for round_, rows in sorted(tables.items()):
        clients = [row["client"] for row in rows if not row["dropped"]]
        logits = [part.logits for part in members if part.round == round_]
        if not logits:
            raise FedstageError(f"{evaluated}, round {round_}: no client's model is left")
        pairs = zip(clients, torch.cat(logits).float(), strict=True)
        in_turn = sorted(pairs, key=itemgetter(0))
        scores = [score(member, labels) for _, member in in_turn]
        mixes = {client: counts.get(client, {}) for client in clients}
        own = None if owners is None else _on_own(in_turn, labels, owners)
        yield round_, mean_metrics(scores, len(labels), mixes, own)


def _on_own(
    models: list[tuple[int, torch.Tensor]], labels: torch.Tensor, owners: torch.Tensor
) -> list[float]:
    """Return the accuracies of clients' logits on the clients' own samples."""
    own = (accuracy_on_own(logits, labels, owners, client) for client, logits in models)
    return [accuracy for found in own for accuracy in found]


def _traffic(rows: list[Row], counts: int) -> dict[str, int]:
    """Return the number of participants, and the most bytes that one of them moves.

    A participant that sends anything sends `counts` bytes more.
    """
    up = max((row["bytes_up"] for row in rows), default=0)
    down = max((row["bytes_down"] for row in rows), default=0)
    return {"participants": len(rows), "bytes_up": up + counts if up else 0, "bytes_down": down}
