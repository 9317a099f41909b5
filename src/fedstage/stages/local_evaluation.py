"""Stage `local_evaluation`: score models that were trained without federation."""

from pathlib import Path
from statistics import fmean

from fedstage.algorithm.one_shot.client_models import compute_client_logits
from fedstage.data.label_counts import read_counts
from fedstage.results.metrics import METRICS_SCHEMA, spread
from fedstage.results.scores import own_accuracies, score
from fedstage.settings.lines import LocalLine
from fedstage.stages.inputs import begin, read_evaluated
from fedstage.storage.tables import save_rows


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
        The round of the row: that many rounds have as many local epochs.
    who : str
        Whose models they are: ``each_client``, a single client such as ``client_3``, or ``pooled``.
    models : list of Path
        One a client, in the order of clients; or a single one.
    quantisation : str, optional
        How the models are quantised, if they are: JSON.
    """
    settings, device, dataset_info = begin(line, LocalLine, info)
    images, labels = read_evaluated(data, clients, role, device)
    scores = []
    for path in models:
        logits, _ = compute_client_logits(settings, path, quantisation, images, dataset_info)
        scores.append(score(logits, labels.cpu()))
    own = own_accuracies(scores, read_counts(histogram))
    areas = [one.auc for one in scores if one.auc is not None]
    row = {
        "round": rounds,
        "evaluated": who,
        "role": role,
        "top1_accuracy": fmean(one.accuracy for one in scores),
        "balanced_accuracy": fmean(one.balanced_accuracy for one in scores),
        "auc": fmean(areas) if len(areas) == len(scores) else None,
        "loss": fmean(one.loss for one in scores),
        "samples": len(labels),
        "client_std": spread([one.accuracy for one in scores]),
        "own_mean": fmean(own),
        "own_std": spread(own),
        "bytes_up": 0,
        "bytes_down": 0,
        "participants": settings.clients,
    }
    save_rows(output, [row], METRICS_SCHEMA)
