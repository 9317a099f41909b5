"""Stage `local_evaluation`: score models that were trained without federation."""

from pathlib import Path

from fedstage.algorithm.one_shot.client_models import compute_client_logits
from fedstage.algorithm.one_shot.outputs import of_classes
from fedstage.data.label_counts import read_counts
from fedstage.results.metrics import METRICS_SCHEMA
from fedstage.results.model_metrics import mean_metrics
from fedstage.results.scores import score
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
    images, labels = read_evaluated(data, clients, role, device, dataset_info)
    scores = []
    for path in models:
        logits, _ = compute_client_logits(settings, path, quantisation, images, dataset_info)
        scores.append(score(of_classes(logits, dataset_info), labels.cpu()))
    row = {
        "round": rounds,
        "evaluated": who,
        "role": role,
        **mean_metrics(scores, len(labels), read_counts(histogram)),
        "bytes_up": 0,
        "bytes_down": 0,
        "participants": settings.clients,
    }
    save_rows(output, [row], METRICS_SCHEMA)
