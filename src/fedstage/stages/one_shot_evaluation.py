"""Stage `one_shot_evaluation`: score what one-shot federated learning predicts."""

from collections.abc import Mapping, Sequence
from operator import mul
from pathlib import Path

import torch

from fedstage.aggregation_rules import combination, sees_images
from fedstage.artefacts import Weights, load_table, load_tensors, save_table
from fedstage.config import OneShotLine
from fedstage.engine.devices import prepare
from fedstage.engine.images import normalise
from fedstage.lines import members
from fedstage.metrics import METRICS_SCHEMA
from fedstage.reading import read_counts, read_info, read_labelled, read_line, read_samples
from fedstage.scores import own_accuracies, score, spread

BATCH = 1000  # samples at a time: the images that a rule sees are large


def one_shot_evaluation(
    *,
    line: Path,
    role: str,
    aggregator: Path,
    logits: list[Path],
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
        ``test``, or ``validation``: then `clients` says which training samples these are.
    aggregator : Path
        What the aggregator has learnt.
    logits : list of Path
        What the members say about the samples of the role.
    rounds : Path
        What one client sent and received in all.
    """
    settings = read_line(line, OneShotLine)
    device, about = prepare(settings.numerics), read_info(info)
    samples = read_samples(clients, "validation") if role == "validation" else None
    images, labels = read_labelled(data, samples, device)
    said = torch.stack([load_tensors(path)[0]["logits"] for path in logits]).to(device)
    parameters = {name: value.to(device) for name, value in load_tensors(aggregator)[0].items()}
    pixels = normalise(images, about) if sees_images(settings.aggregator) else None
    result = score(_combined(settings, parameters, said, pixels).cpu(), labels.cpu())
    own = own_accuracies([result], read_counts(histogram))
    clients_left = len(members(settings))
    row = {
        "round": 1,
        "evaluated": "aggregator",
        "role": role,
        "top1_accuracy": result.accuracy,
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


@torch.no_grad()
def _combined(
    settings: OneShotLine, parameters: Weights, logits: torch.Tensor, pixels: torch.Tensor | None
) -> torch.Tensor:
    """Return what the aggregator predicts, float32 [n, C]."""
    combine = combination(settings.aggregator)
    parts = [
        combine(
            parameters,
            logits[:, start : start + BATCH],
            None if pixels is None else pixels[start : start + BATCH],
        )
        for start in range(0, logits.shape[1], BATCH)
    ]
    return torch.cat(parts)
