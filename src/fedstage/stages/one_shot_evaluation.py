"""Stage `one_shot_evaluation`: score the predictions of one-shot federated learning."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from fedstage.algorithm.measures.metrics import METRICS_SCHEMA
from fedstage.algorithm.measures.model_metrics import model_metrics
from fedstage.algorithm.one_shot.client_models import of_classes
from fedstage.algorithm.one_shot.prediction import of_chosen, predict
from fedstage.data.label_counts import read_counts
from fedstage.plan.inputs import OneShotEvaluationInputs
from fedstage.protocol.one_shot import members
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.stages import Made
from fedstage.stages.inputs import begin, load_model, read_evaluated, read_owners, stack_logits
from fedstage.storage.tables import load_table, save_rows
from fedstage.storage.tensors import load_tensors
from fedstage.training.passes import compute_logits
from fedstage.weights import Weights


def one_shot_evaluation(
    recipe: OneShotRecipe, read: OneShotEvaluationInputs[Path], made: Made, *, role: str
) -> None:
    """Write one row of metrics, of round 1, and the aggregator's metrics during its training.

    Parameters
    ----------
    role : str
        ``test``, ``test_own``, or ``validation``: the samples with this role in `clients`.
    over_rounds : Path
        Output: a row for each snapshot, by the round of the aggregator's training. Some released
        code reports the highest of these rows; here nothing is chosen by it.
    """
    device, info = begin(recipe, read.info)
    images, labels = read_evaluated(read.data, read.clients, role, device, info)
    owners = read_owners(read.data, role, recipe)
    counts, remaining = read_counts(read.histogram), len(members(recipe))
    travelled = _mean_bytes(read.rounds, remaining)

    def row(
        round_: int, predicted: torch.Tensor, voted: torch.Tensor | None = None
    ) -> dict[str, Any]:
        return {
            "round": round_,
            "evaluated": "aggregator" if read.student is None else "distilled_model",
            "role": role,
            **model_metrics(predicted, labels, counts, owners, voted),
            **travelled,
            "participants": remaining,
        }

    later: list[dict[str, Any]] = []
    if read.student is not None:
        model = load_model(read.student, recipe.student, info, device, recipe.numerics)
        last = row(1, compute_logits(model, images, info, recipe.numerics))
    else:
        assert read.aggregator is not None, "the graph gives both without a student"
        assert read.snapshots is not None, "the graph gives both without a student"
        weights, notes = load_tensors(read.aggregator)
        stacked = stack_logits(read.logits, device)
        ensemble = of_chosen(recipe, notes["members"], stacked, info)
        voted = of_classes(ensemble, info).argmax(2)

        def of(round_: int, parameters: Weights) -> dict[str, Any]:
            predicted = predict(recipe.aggregator, parameters, ensemble, images, info)
            return row(round_, predicted, voted)

        last = of(1, weights)
        later = [of(round_, one) for round_, one in _snapshots(read.snapshots)]
    save_rows(made["output"], [last], METRICS_SCHEMA)
    save_rows(made["over_rounds"], later, METRICS_SCHEMA)


def _snapshots(path: Path) -> Iterator[tuple[int, Weights]]:
    """Yield each round of an aggregator's training that was kept, and its parameters."""
    stacks, metadata = load_tensors(path)
    for position, round_ in enumerate(metadata["rounds"]):
        yield round_, {name: stack[position] for name, stack in stacks.items()}


def _mean_bytes(rounds: Sequence[Path], clients: int) -> dict[str, int]:
    """Return the bytes that a client sends and receives in all rounds, as a mean over clients."""
    rows = [row for path in rounds for row in load_table(path).to_pylist()]
    return {
        way: round(sum(row[way] * row["participants"] for row in rows) / clients)
        for way in ("bytes_up", "bytes_down")
    }
