import numpy as np
from tests.shared.stages import participation

from fedstage.data.participation import draw_by_samples
from fedstage.data.partitions import HISTOGRAM_SCHEMA
from fedstage.storage.tables import load_table, save_table


def written(folder, name="rounds.parquet", **changes):
    arguments = {"clients": 20, "participants": 5, "seed": 3, "first": 1, "last": 100}
    output = folder / name
    participation(**{**arguments, **changes}, output=output)
    return load_table(output)


def test_participants_by_samples_are_read_from_the_label_counts(tmp_path):
    columns = {
        "client": [0, 1, 1, 3, 4], "role": ["train", "train", "train", "train", "validation"],
        "label": [0, 0, 1, 2, 0], "samples": [5, 10, 10, 1, 99],
    }  # fmt: skip
    histogram = tmp_path / "histogram.parquet"
    save_table(histogram, columns, HISTOGRAM_SCHEMA)
    rows = written(tmp_path, clients=6, participants=2, histogram=histogram).to_pydict()
    samples = np.array([5, 20, 0, 1, 0, 0])
    assert rows["client"] == [
        int(c) for t in range(1, 101) for c in draw_by_samples(samples, 2, 3, t)
    ]
    assert set(rows["client"]) == {0, 1, 3}


STRAGGLERS = {"staleness": {"cyclic": {"delays": [0, 1]}}}


def test_stragglers_start_from_an_older_round(tmp_path):
    rows = written(tmp_path, last=5, delays=STRAGGLERS).to_pydict()
    assert rows["base_round"] == [base for base in (0, 0, 2, 2, 4) for _ in range(5)]
    assert rows["client"] == written(tmp_path, "other.parquet", last=5).to_pydict()["client"]
