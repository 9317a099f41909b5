"""A working folder with a runs file and metrics, as a run leaves them."""

import pytest

from fedstage.results.metrics import METRICS_SCHEMA
from fedstage.storage.files import save_json
from fedstage.storage.tables import save_table

#: Accuracies of three seeds by method and by the value of a further axis.
ACCURACIES = {
    ("fedsdd", 0.1): [70.0, 72.0, 71.0],
    ("fedavg", 0.1): [60.0, 61.0, 61.5],
    ("fedprox", 0.1): [59.0, 63.0, 61.0],
    ("fedsdd", 1.0): [80.0, 82.0, 81.0],
    ("fedavg", 1.0): [79.0, 83.0, 81.0],
    ("fedprox", 1.0): [80.0, 82.0, 81.0],
}
#: What runs consist of; only the line's kind is read here.
CANDIDATES = [
    {
        "parts": [
            {
                "length": {"rounds": 2},
                "federated": {
                    "data": "digits",
                    "clients": 4,
                    "partition": "iid",
                    "participants": 4,
                    "model": "cnn_small",
                    "client": {"epochs": 1, "batch_size": 16, "learning_rate": 0.05},
                    "seed": 0,
                },
            }
        ]
    }
]


def write_metrics(path, accuracy, role="test"):
    path.parent.mkdir(parents=True, exist_ok=True)
    same = {"evaluated": "global_model", "role": role, "balanced_accuracy": 50.0, "auc": None}
    same |= {"loss": 1.0, "samples": 360, "client_std": None, "own_mean": 1.0, "own_std": None}
    same |= {"bytes_up": 100, "bytes_down": 100, "participants": 4}
    columns = {key: [value] * 2 for key, value in same.items()}
    columns |= {"round": [1, 2], "top1_accuracy": [9.0, accuracy]}
    save_table(path, columns, METRICS_SCHEMA)


@pytest.fixture
def folder(tmp_path):
    """The working folder; one run has scores on validation samples too."""
    runs = []
    for (method, alpha), accuracies in ACCURACIES.items():
        for seed, accuracy in enumerate(accuracies):
            stem = f"results/training/{method}{alpha}{seed}"
            write_metrics(tmp_path / f"{stem}-test.parquet", accuracy)
            settings = {"method": method, "partition.alpha": alpha, "seed": seed}
            runs.append(
                {
                    "settings": settings,
                    "metrics": f"{stem}-test.parquet",
                    "validation": [f"{stem}-validation.parquet"],
                    "partition": "unread",
                    "candidates": CANDIDATES,
                }
            )
    write_metrics(tmp_path / "results/training/fedavg0.10-validation.parquet", 55.0, "validation")
    head = {"experiment": "tiny", "scale": "mini", "title": "Tiny", "rows": ["method"]}
    head |= {"columns": ["partition.alpha"], "labels": {"fedavg": "FedAvg", "fedsdd": "FedSDD"}}
    path = tmp_path / "results/descriptions/tiny/mini.runs.json"
    path.parent.mkdir(parents=True)
    save_json(path, head | {"runs": runs})
    return tmp_path
