"""Runs of an experiment for tests of what is made of them: their settings, and their metrics."""

from tests.shared.settings import federated

from fedstage.algorithm.measures.metrics import METRICS_SCHEMA
from fedstage.storage.tables import save_table

#: What runs consist of, of which tests of tables, figures and claims read no more than the length.
CANDIDATES = [{"parts": [{"length": {"rounds": 2}, "federated": federated()}]}]


def described(settings, metrics="m", **more):
    """Return a run of a runs file, with its values on axes and the path of its metrics."""
    same = {"settings": settings, "metrics": str(metrics), "partition": "p"}
    return same | {"candidates": CANDIDATES} | more


def runs_file(runs, **more):
    """Return the content of a runs file, of an experiment with methods as rows."""
    head = {"experiment": "e", "scale": "s", "title": "t", "rows": ["method"]}
    return head | {"runs": list(runs)} | more


def write_metrics(path, accuracies, **changes):
    """Write metrics of these accuracies after rounds 1, 2, ...; return the path as a text."""
    rounds = len(accuracies)
    columns = {
        "round": list(range(1, rounds + 1)),
        "evaluated": ["global_model"] * rounds,
        "role": ["test"] * rounds,
        "top1_accuracy": accuracies,
        "balanced_accuracy": [value - 2 for value in accuracies],
        "auc": [value + 7 for value in accuracies],
        "loss": [1.0] * rounds,
        "ece": [3.0] * rounds,
        "disagreement": [None] * rounds,
        "ensemble_gain": [None] * rounds,
        "samples": [360] * rounds,
        "client_std": [None] * rounds,
        "own_test_mean": [None] * rounds,
        "own_test_std": [None] * rounds,
        "own_mean": accuracies,
        "own_std": [2.0] * rounds,
        "bytes_up": [100] * rounds,
        "bytes_down": [200] * rounds,
        "participants": [4] * rounds,
        "training_loss": [None] * rounds,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    save_table(path, columns | changes, METRICS_SCHEMA)
    return str(path)


def rows_of(table):
    """Return the lines of a table of texts by its heads."""
    return [dict(zip(table.heads, line, strict=True)) for line in table.lines]
