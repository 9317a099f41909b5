"""Stage `local_evaluation`: score models that were trained without federation."""

from pathlib import Path

from fedstage.algorithm.one_shot.client_models import compute_client_logits
from fedstage.algorithm.one_shot.outputs import of_classes
from fedstage.data.label_counts import read_counts
from fedstage.plan.inputs import LocalEvaluationInputs
from fedstage.results.metrics import METRICS_SCHEMA
from fedstage.results.model_metrics import mean_metrics
from fedstage.results.scores import score
from fedstage.settings.recipes import LocalRecipe
from fedstage.stages.inputs import begin, read_evaluated
from fedstage.storage.tables import save_rows


def local_evaluation(
    recipe: LocalRecipe,
    read: LocalEvaluationInputs[Path],
    *,
    rounds: int,
    role: str,
    who: str,
    quantisation: str | None = None,
    output: Path,
) -> None:
    """Write one row of metrics: the unweighted mean over models on the common data.

    Parameters
    ----------
    rounds : int
        The round of the row: that many rounds have as many local epochs.
    who : str
        Whose models they are: ``each_client``, a single client such as ``client_3``, or ``pooled``.
    quantisation : str, optional
        How the models are quantised, if they are: JSON.
    """
    device, info = begin(recipe, read.info)
    images, labels = read_evaluated(read.data, read.clients, role, device, info)
    scores = []
    for path in read.models:
        logits, _ = compute_client_logits(recipe, path, quantisation, images, info)
        scores.append(score(of_classes(logits, info), labels.cpu()))
    row = {
        "round": rounds,
        "evaluated": who,
        "role": role,
        **mean_metrics(scores, len(labels), read_counts(read.histogram)),
        "bytes_up": 0,
        "bytes_down": 0,
        "participants": recipe.clients,
    }
    save_rows(output, [row], METRICS_SCHEMA)
