"""Which round is the best: of validation samples, and of nothing else."""

import pytest

from fedstage.algorithm.measures.metrics import METRICS_SCHEMA
from fedstage.errors import FedstageError
from fedstage.results.communication.runs import best_round
from fedstage.storage.tables import save_table


def write(path, accuracies, role="validation", **columns):
    filled = {field.name: [1] * len(accuracies) for field in METRICS_SCHEMA}
    filled |= {
        "round": [5 * number for number in range(1, len(accuracies) + 1)],
        "evaluated": ["global_model"] * len(accuracies),
        "role": [role] * len(accuracies),
        "top1_accuracy": accuracies,
        **columns,
    }
    save_table(path, filled, METRICS_SCHEMA)
    return str(path)


def test_the_first_of_equals_is_the_best(tmp_path):
    path = write(tmp_path / "a.parquet", [40.0, 60.0, 60.0, 55.0])
    assert best_round(path, "top1_accuracy") == 10


@pytest.mark.parametrize("role", ["test", "test_own"])
def test_test_samples_choose_no_round(tmp_path, role):
    path = write(tmp_path / "a.parquet", [40.0, 60.0], role)
    with pytest.raises(FedstageError, match="only 'validation' may choose"):
        best_round(path, "top1_accuracy")
