"""Stage `one_shot_evaluation`: score what one-shot federated learning predicts."""

from collections.abc import Mapping, Sequence
from operator import mul
from pathlib import Path
from typing import Any

import torch

from fedstage.algorithm.one_shot.prediction import predict
from fedstage.data.bags import Samples
from fedstage.data.samples import (
    fill_model,
    new_model,
    read_counts,
    read_info,
    read_labelled,
    read_line,
    read_samples,
)
from fedstage.plan.sharing import members
from fedstage.results.metrics import METRICS_SCHEMA
from fedstage.results.scores import own_accuracies, score, spread
from fedstage.settings.one_shot import OneShotLine
from fedstage.storage.tensors import load_table, load_tensors, save_table
from fedstage.training.devices import prepare
from fedstage.training.inference import compute_logits


def one_shot_evaluation(
    *,
    line: Path,
    role: str,
    aggregator: Path | None = None,
    logits: list[Path] | None = None,
    student: Path | None = None,
    data: Path,
    info: Path,
    clients: Path,
    histogram: Path,
    rounds: Path,
    output: Path,
) -> None:
    """Write one row of metrics, booked under round 1.

    Parameters
    ----------
    role : str
        ``test``, ``test_own``, or ``validation``: then `clients` says which training samples these
        are.
    aggregator, logits : optional
        What the aggregator has learnt, and what its members say about the samples of the role.
    student : Path, optional
        The model that the aggregator has taught, where that is what predicts.
    rounds : Path
        What one client sent and received in all.
    """
    settings = read_line(line, OneShotLine)
    device, about = prepare(settings.numerics), read_info(info)
    samples = read_samples(clients, "validation") if role == "validation" else None
    images, labels = read_labelled(data, samples, device)
    if student is not None:
        predicted = _answers(settings, student, images, about)
    else:
        assert aggregator is not None, "the graph gives it where there is no student"
        said = torch.stack([load_tensors(path)[0]["logits"] for path in logits or []]).to(device)
        parameters, _ = load_tensors(aggregator)
        predicted = predict(settings.aggregator, parameters, said, images, about)
    result = score(predicted.cpu(), labels.cpu())
    own = own_accuracies([result], read_counts(histogram))
    clients_left = len(members(settings))
    row = {
        "round": 1,
        "evaluated": "aggregator" if student is None else "distilled_model",
        "role": role,
        "top1_accuracy": result.accuracy,
        "balanced_accuracy": result.balanced_accuracy,
        "auc": result.auc,
        "loss": result.loss,
        "samples": len(labels),
        "client_std": None,
        "own_mean": sum(own) / len(own),
        "own_std": spread(own),
        **_totals(load_table(rounds).to_pydict(), clients_left),
        "participants": clients_left,
    }
    save_table(output, {name: [value] for name, value in row.items()}, METRICS_SCHEMA)


def _totals(columns: Mapping[str, Sequence[int]], clients: int) -> dict[str, int]:
    """Return the bytes that a client sends and receives in all, as a mean over clients.

    A round in which only some take part counts by their share.
    """
    present = columns["participants"]
    return {
        way: round(sum(map(mul, columns[way], present)) / clients)
        for way in ("bytes_up", "bytes_down")
    }


def _answers(
    settings: OneShotLine, student: Path, images: Samples, about: dict[str, Any]
) -> torch.Tensor:
    """Return the student's logits [n, C]."""
    model = new_model(settings.student, about, images.device, settings.numerics)
    fill_model(model, load_tensors(student)[0], student)
    return compute_logits(model, images, about, settings.numerics)
