import json

import numpy as np
import pytest
from tests.shared.stages import participation

from fedstage.data.participation import SCHEMA, draw, draw_by_samples
from fedstage.data.partitions import HISTOGRAM_SCHEMA
from fedstage.errors import FedstageError
from fedstage.execution.cli import main
from fedstage.storage.tables import load_table, save_table


def written(folder, name="rounds.parquet", **changes):
    arguments = {"clients": 20, "participants": 5, "seed": 3, "first": 1, "last": 100}
    output = folder / name
    participation(**{**arguments, **changes}, output=output)
    return load_table(output)


def test_file_holds_the_draw_of_every_round(tmp_path):
    table = written(tmp_path)
    assert table.schema.remove_metadata() == SCHEMA
    rows = table.to_pydict()
    assert rows["round"] == [t for t in range(1, 101) for _ in range(5)]
    assert rows["participant"] == list(range(5)) * 100
    assert rows["client"] == [int(c) for t in range(1, 101) for c in draw(20, 5, 3, t)]


def test_a_round_is_the_same_whichever_rounds_are_drawn_with_it(tmp_path):
    whole = written(tmp_path, first=1, last=12).slice(5 * 6, 5 * 3)
    part = written(tmp_path, "part.parquet", first=7, last=9)
    assert whole.equals(part)


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


def test_everybody_starts_from_the_round_before_unless_the_plan_has_delays(tmp_path):
    rows = written(tmp_path).to_pydict()
    assert rows["base_round"] == [t - 1 for t in rows["round"]]
    assert written(tmp_path, delays={}).to_pydict() == rows


def test_stragglers_start_from_an_older_round(tmp_path):
    rows = written(tmp_path, last=5, delays=STRAGGLERS).to_pydict()
    assert rows["base_round"] == [base for base in (0, 0, 2, 2, 4) for _ in range(5)]
    assert rows["client"] == written(tmp_path, "other.parquet", last=5).to_pydict()["client"]


def test_participants_of_those_who_would_be_late_stay_empty(tmp_path):
    away = STRAGGLERS | {"withdraw_stale": True}
    rows = written(tmp_path, last=4, delays=away).to_pydict()
    everyone = written(tmp_path, "other.parquet", last=4).to_pydict()["client"]
    assert rows["client"] == [
        None if t in (2, 4) else client for t, client in zip(rows["round"], everyone, strict=True)
    ]


def test_drawn_groups_keep_the_delays_of_their_participants(tmp_path):
    late = {"staleness": {"random": {"probabilities": [0.5, 0.3, 0.2]}}}
    single = written(tmp_path, delays=late).to_pydict()
    groups = written(tmp_path, "groups.parquet", groups=3, delays=late).to_pylist()
    found = [
        (row["round"], row["participant"] % 5, row["client"], row["base_round"])
        for row in groups
        if row["client"] is not None
    ]
    names = ("round", "participant", "client", "base_round")
    expected = zip(*(single[name] for name in names), strict=True)
    assert sorted(found) == sorted(expected)


def test_clients_come_in_turn(tmp_path):
    rows = written(tmp_path, last=8, participation="in_turn").to_pydict()
    assert rows["client"] == [*range(20), *range(20)]


def test_same_arguments_same_bytes(tmp_path):
    written(tmp_path, "a.parquet")
    written(tmp_path, "b.parquet")
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"delays": {"staleness": "late"}}, "--settings: delays.staleness = 'late'"),
        ({"participants": 21}, "participants = 21: from 1 to clients = 20"),
        ({"first": 0}, "round = 0: at least 1"),
        ({"first": 5, "last": 4}, "last = 4: at least first = 5"),
    ],
)
def test_wrong_arguments_are_refused_and_nothing_is_written(tmp_path, changes, message):
    with pytest.raises(FedstageError, match=message):
        written(tmp_path, **changes)
    assert not list(tmp_path.iterdir())


def test_command_line(tmp_path):
    output = tmp_path / "rounds.parquet"
    plan = {"clients": 20, "participants": 5, "seed": 3, "participation": "uniform"}
    options = [f"--settings={json.dumps(plan)}", "--first=1", "--last=2"]
    assert main(["participation", *options, f"--output={output}"]) == 0
    assert load_table(output).equals(written(tmp_path, "again.parquet", last=2))
