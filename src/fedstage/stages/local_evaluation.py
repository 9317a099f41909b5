"""Stage `local_evaluation`: score models that were trained without federation."""

import statistics
from pathlib import Path

from fedstage.algorithm.one_shot.client_models import ask
from fedstage.data.samples import read_counts, read_info, read_labelled, read_line, read_samples
from fedstage.results.metrics import METRICS_SCHEMA
from fedstage.results.scores import own_accuracies, score, spread
from fedstage.settings.lines import LocalLine
from fedstage.storage.tensors import save_table
from fedstage.training.devices import prepare


def local_evaluation(
    *,
    line: Path,
    rounds: int,
    role: str,
    who: str,
    models: list[Path],
    quantisation: str | None = None,
    data: Path,
    info: Path,
    clients: Path,
    histogram: Path,
    output: Path,
) -> None:
    """Write one row of metrics: the unweighted mean over models on the common data.

    Parameters
    ----------
    rounds : int
        The round to book the row under: as many local epochs as that many rounds have.
    who : str
        Whose models they are: ``each_client``, ``client_3`` or another by itself, or ``pooled``.
    models : list of Path
        One a client, in the order of clients; or the one.
    quantisation : str, optional
        How the models are quantised, if they are: JSON.
    """
    settings = read_line(line, LocalLine)
    device = prepare(settings.numerics)
    about = read_info(info)
    samples = read_samples(clients, "validation") if role == "validation" else None
    images, labels = read_labelled(data, samples, device)
    scores = []
    for path in models:
        said, _ = ask(settings, path, quantisation, images, about)
        scores.append(score(said, labels.cpu()))
    own = own_accuracies(scores, read_counts(histogram))
    areas = [one.auc for one in scores if one.auc is not None]
    row = {
        "round": rounds,
        "evaluated": who,
        "role": role,
        "top1_accuracy": statistics.fmean(one.accuracy for one in scores),
        "balanced_accuracy": statistics.fmean(one.balanced_accuracy for one in scores),
        "auc": statistics.fmean(areas) if len(areas) == len(scores) else None,
        "loss": statistics.fmean(one.loss for one in scores),
        "samples": len(labels),
        "client_std": spread([one.accuracy for one in scores]),
        "own_mean": statistics.fmean(own),
        "own_std": spread(own),
        "bytes_up": 0,
        "bytes_down": 0,
        "participants": settings.clients,
    }
    save_table(output, {name: [value] for name, value in row.items()}, METRICS_SCHEMA)
