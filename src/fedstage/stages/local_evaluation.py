"""Stage `local_evaluation`: score models that were trained without federation."""

from pathlib import Path

from fedstage.algorithm.measures.metrics import METRICS_SCHEMA
from fedstage.algorithm.measures.model_metrics import mean_metrics
from fedstage.algorithm.measures.scores import accuracies_on_own, accuracy_on_own, score
from fedstage.algorithm.one_shot.client_models import compute_client_logits, of_classes
from fedstage.data.label_counts import read_counts
from fedstage.plan.inputs import LocalEvaluationInputs
from fedstage.settings.recipes import LocalRecipe
from fedstage.stages.inputs import begin, read_evaluated, read_owners
from fedstage.storage.tables import save_rows


def local_evaluation(
    recipe: LocalRecipe,
    read: LocalEvaluationInputs[Path],
    *,
    rounds: int,
    role: str,
    who: str,
    output: Path,
) -> None:
    """Write one row of metrics: the unweighted mean over models on the common data.

    Parameters
    ----------
    rounds : int
        The round of the row: this many rounds have as many local epochs as the training.
    who : str
        Whose models they are: ``each_client``, a single client such as ``client_3``, or ``pooled``.
    """
    device, info = begin(recipe, read.info)
    images, labels = read_evaluated(read.data, read.clients, role, device, info)
    labels, owners = labels.cpu(), read_owners(read.data, role, recipe)
    scores, own = [], []
    for number, path in enumerate(read.models):
        heads, _ = compute_client_logits(recipe, path, images, info)
        logits = of_classes(heads, info).cpu()
        scores.append(score(logits, labels))
        if owners is None:
            continue
        if len(read.models) == 1:
            own += accuracies_on_own(logits, labels, owners)
        else:
            own += accuracy_on_own(logits, labels, owners, number)
    counts = read_counts(read.histogram)
    row = {
        "round": rounds,
        "evaluated": who,
        "role": role,
        **mean_metrics(scores, len(labels), counts, None if owners is None else own),
        "bytes_up": 0,
        "bytes_down": 0,
        "participants": recipe.clients,
    }
    save_rows(output, [row], METRICS_SCHEMA)
