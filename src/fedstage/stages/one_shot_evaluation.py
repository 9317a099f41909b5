"""Stage `one_shot_evaluation`: score the predictions of one-shot federated learning."""

from operator import mul
from pathlib import Path

from fedstage.algorithm.one_shot.prediction import predict
from fedstage.data.samples import read_counts
from fedstage.plan.one_shot_sharing import members
from fedstage.results.metrics import METRICS_SCHEMA
from fedstage.results.model_metrics import model_metrics
from fedstage.settings.one_shot import OneShotLine
from fedstage.stages.inputs import begin, load_model, read_evaluated, stack_logits
from fedstage.storage.tables import load_table, save_rows
from fedstage.storage.tensors import load_tensors
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
    """Write one row of metrics, of round 1.

    Parameters
    ----------
    role : str
        ``test``, ``test_own``, or ``validation``: the samples with this role in `clients`.
    aggregator, logits : optional
        The trained aggregator, and its members' logits on the samples of the role.
    student : Path, optional
        The model that learnt from the aggregator, scored in its place.
    rounds : Path
        Bytes that one client sent and received, a row a round.
    """
    settings, device, dataset_info = begin(line, OneShotLine, info)
    images, labels = read_evaluated(data, clients, role, device)
    if student is not None:
        model = load_model(student, settings.student, dataset_info, device, settings.numerics)
        predicted = compute_logits(model, images, dataset_info, settings.numerics)
    else:
        assert aggregator is not None, "the graph gives it where there is no student"
        ensemble = stack_logits(logits or [], device)
        parameters, _ = load_tensors(aggregator)
        predicted = predict(settings.aggregator, parameters, ensemble, images, dataset_info)
    remaining = len(members(settings))
    row = {
        "round": 1,
        "evaluated": "aggregator" if student is None else "distilled_model",
        "role": role,
        **model_metrics(predicted, labels, read_counts(histogram)),
        **_mean_bytes(rounds, remaining),
        "participants": remaining,
    }
    save_rows(output, [row], METRICS_SCHEMA)


def _mean_bytes(rounds: Path, clients: int) -> dict[str, int]:
    """Return the bytes that a client sends and receives in all rounds, as a mean over clients."""
    columns = load_table(rounds).to_pydict()
    present = columns["participants"]
    return {
        way: round(sum(map(mul, columns[way], present)) / clients)
        for way in ("bytes_up", "bytes_down")
    }
