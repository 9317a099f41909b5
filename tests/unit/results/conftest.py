"""Tidy scores of made-up runs."""

import pandas as pd
import pytest

from fedstage.results.tidy import CellHeader, Header, Tidy, typed

#: Accuracies of three seeds by method and by the value of a further axis.
ACCURACIES = {
    ("local_only", 0.1): [40.0, 41.0, 42.0],
    ("fedavg", 0.1): [60.0, 61.0, 61.5],
    ("fedsdd", 0.1): [70.0, 72.0, 71.0],
    ("local_only", 1.0): [50.0, 51.0, 52.0],
    ("fedavg", 1.0): [79.0, 83.0, 81.0],
    ("fedsdd", 1.0): [80.0, 82.0, 81.0],
}


def tidy_of(accuracies, *, rounds=2, measures=(), **header):
    """Return the scores of runs by their values on `method` and `partition.alpha`, and seed.

    The accuracy grows to its value by one each round. `measures` are further ones of the last
    round, with a function of a run's method and accuracy.
    """
    rows = []
    for (method, alpha), values in accuracies.items():
        for seed, value in enumerate(values):
            at = {"method": method, "partition.alpha": alpha, "seed": seed}
            about = {"evaluated": "global_model", "role": "test"}
            for number in range(1, rounds + 1):
                score = {"measure": "top1_accuracy", "value": value - rounds + number}
                rows.append({**at, **about, "round": number, **score})
            for name, function in dict(measures).items():
                found = {"measure": name, "value": function(method, value)}
                if found["value"] is not None:
                    rows.append({**at, **about, "round": rounds, **found})
    cells = [
        CellHeader(
            axes={"method": method, "partition.alpha": alpha},
            training="alone" if method == "local_only" else "federated",
        )
        for method, alpha in accuracies
    ]
    head = {"experiment": "tiny", "scale": "mini", "title": "Tiny", "rows": ["method"]}
    head |= {"columns": ["partition.alpha"], "labels": {"fedavg": "FedAvg", "fedsdd": "FedSDD"}}
    frame = pd.DataFrame(rows)
    axes = {name: typed(frame[name].tolist()) for name in ("method", "partition.alpha", "seed")}
    origin = {"settings": "abc", "source": "c", "machine": "m", "seconds": 1.5}
    return Tidy(frame.assign(**axes, **origin), Header(**head | header, cells=cells))


@pytest.fixture
def tidy():
    return tidy_of(ACCURACIES)
