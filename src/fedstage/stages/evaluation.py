"""Stage `evaluation`: score a line's global models, or an ensemble, in all its rounds at once."""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from fedstage.algorithm.ensemble_trainers import Members, teacher_logits
from fedstage.algorithm.ensemble_trainers.reading import read_members
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
from fedstage.errors import FedstageError
from fedstage.plan.evaluated import parse_evaluated
from fedstage.plan.members import checkpoints
from fedstage.results.metrics import METRICS_SCHEMA
from fedstage.results.scores import ClassCounts, own_accuracies, score, spread
from fedstage.settings.lines import Line
from fedstage.storage.tensors import load_table, load_tensors, save_table
from fedstage.training.devices import prepare
from fedstage.training.inference import compute_logits

Scored = Iterator[tuple[int, torch.Tensor]]


def evaluation(
    *,
    line: Path,
    evaluated: str,
    role: str,
    models: list[Path],
    data: Path,
    info: Path,
    clients: Path,
    histogram: Path,
    participants: list[Path],
    output: Path,
) -> None:
    """Write a row of metrics for each evaluated round.

    Parameters
    ----------
    evaluated : str
        ``global_model`` (`models` are the w*_{t,0}), or an ensemble such as ``aggregated_2`` or
        ``clients`` (`models` are the logits of its members, of all rounds); `fedstage.plan.evaluated`
        has the names.
    role : str
        ``test``, or ``validation``: then `clients` says which training samples these are.
    participants : list of Path
        The participants of every group of the evaluated rounds.
    """
    settings = read_line(line, Line)
    device = prepare(settings.numerics)
    about = read_info(info)
    samples = read_samples(clients, "validation") if role == "validation" else None
    images, labels = read_labelled(data, samples, device)
    rounds = _read_participants(participants)
    scored = (
        _global_models(settings, about, models, images)
        if evaluated == "global_model"
        else _ensembles(evaluated, models, sorted(rounds))
    )
    counts = read_counts(histogram)
    rows = [
        {"round": round, "evaluated": evaluated, "role": role}
        | _row(logits, labels.cpu(), counts)
        | rounds[round]
        for round, logits in scored
    ]
    columns = {name: [row[name] for row in rows] for name in METRICS_SCHEMA.names}
    save_table(output, columns, METRICS_SCHEMA)


def _global_models(
    settings: Line, about: dict[str, Any], paths: list[Path], images: Samples
) -> Scored:
    model = new_model(settings.model, about, images.device, settings.numerics)
    for path in paths:
        weights, notes = load_tensors(path)
        fill_model(model, weights, path)
        yield notes["round"], compute_logits(model, images, about, settings.numerics)


def _ensembles(evaluated: str, paths: list[Path], rounds: list[int]) -> Scored:
    ensemble = parse_evaluated(evaluated)
    reach = checkpoints(ensemble)
    members = read_members(paths)
    for round in rounds:
        window: list[Members] = [part for part in members if round - reach < part.round <= round]
        if not window:
            raise FedstageError(f"{evaluated}, round {round}: no member of the ensemble is left")
        yield round, teacher_logits(ensemble, window)


def _row(logits: torch.Tensor, labels: torch.Tensor, counts: ClassCounts) -> dict[str, Any]:
    result = score(logits, labels)
    own = own_accuracies([result], counts)
    return {
        **result.columns,
        "samples": len(labels),
        "client_std": None,
        "own_mean": sum(own) / len(own),
        "own_std": spread(own),
    }


def _read_participants(paths: list[Path]) -> dict[int, dict[str, int]]:
    """Return, by round, the number of participants and the most bytes that one of them moves."""
    rows: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for path in paths:
        for row in load_table(path).to_pylist():
            rows[row["round"]].append(row)
    return {
        round: {
            "participants": len(group),
            "bytes_up": max(row["bytes_up"] for row in group),
            "bytes_down": max(row["bytes_down"] for row in group),
        }
        for round, group in rows.items()
    }
