"""When runs are as accurate as another one, and what claims are judged by."""

from typing import get_args

import pyarrow.parquet as pq
from traffic import ALL, MODEL, iterative, one_shot

from fedstage.results.communication.runs import with_goals, with_one_unit
from fedstage.results.communication.table import RUN_COLUMNS, run_rows
from fedstage.results.tables.columns import schema_of, write_parquet
from fedstage.settings.scores import Communicated

FENS = {"method": "fens"}


def run(method, scores, **more):
    return iterative(scores, method=method, **more)


def reached(runs, cells=FENS):
    return [one.reached and one.reached.round for one in with_goals(runs, cells)]


def test_the_first_round_that_is_as_accurate_counts():
    runs = [run("fedadam", [40.0, 60.0, 50.0, 70.0]), one_shot(60.0)]
    assert reached(runs) == [2, None]
    assert reached(runs, None) == [None, None]
    # Never, and from the start.
    assert reached([run("fedadam", [40.0, 50.0]), one_shot(60.0)]) == [None, None]
    assert reached([run("fedadam", [70.0, 50.0]), one_shot(60.0)]) == [1, None]


def test_each_run_has_its_own_seed_and_cell_to_reach():
    runs = [
        run("fedadam", [1.0, 2.0, 3.0], seed=0),
        run("fedadam", [1.0, 2.0, 3.0], seed=1),
        run("fedadam", [1.0, 2.0, 3.0], seed=0, alpha=1.0),
        run("fedavg", [3.0, 4.0], seed=1),
        one_shot(2.0, seed=0),
        one_shot(3.0, seed=1),
        one_shot(1.0, seed=0, alpha=1.0),
    ]
    assert reached(runs) == [2, 3, 1, 1, None, None, None]


def test_parameters_are_counted_until_then():
    runs = [run("fedadam", [40.0, 60.0, 70.0]), run("fedavg", [10.0, 20.0]), one_shot(60.0)]
    iterated, never, once = run_rows(with_goals(runs, 60))
    assert (iterated["params"], iterated["params_to_reach"]) == (3 * ALL / 4, 2 * ALL / 4)
    assert iterated["bytes_to_reach"] == 4 * MODEL
    assert (never["params"], never["params_to_reach"]) == (2 * ALL / 4, None)
    assert once["params_to_reach"] == 3 * ALL / 4
    assert run_rows(with_goals(runs, None))[0]["params_to_reach"] is None


def test_methods_are_divided_by_one_unit_and_other_settings_by_their_own():
    small = {"one_shot": 2 * MODEL / 20}
    decoders = [run("cvae", [60.0], seed=seed, **small) for seed in (0, 1)]
    models = [run("fedavg", [60.0, 70.0], seed=seed) for seed in (0, 1)]
    elsewhere = run("cvae", [60.0], alpha=1.0, **small)
    rows = run_rows(with_one_unit([*decoders, *models, elsewhere]))
    assert [row["times_one_shot"] for row in rows] == [1.0, 1.0, 2.0, 2.0, 20.0]


def test_claims_are_judged_by_a_row_a_run(tmp_path):
    runs = [run("fedadam", [40.0, 60.0, 70.0], best=3), one_shot(60.0)]
    iterated, once = run_rows(with_goals(runs, FENS))
    assert list(iterated) == ["method", "alpha", "seed", *get_args(Communicated)]
    assert (iterated["bytes"], iterated["times_one_shot"]) == (6000, 3.0)
    assert (iterated["bytes_to_best"], iterated["times_one_shot_to_best"]) == (6000, 3.0)
    assert (iterated["bytes_to_reach"], iterated["times_one_shot_to_reach"]) == (4000, 2.0)
    assert (iterated["bytes_up_a_round"], iterated["ensemble_bytes"]) == (1000, None)
    assert (once["bytes"], once["times_one_shot"]) == (6000, 3.0)
    assert (once["bytes_up_a_round"], once["ensemble_bytes"]) == (10, 4000)
    assert (once["bytes_to_best"], once["times_one_shot_to_reach"]) == (None, None)
    assert (iterated["memory_bytes"], once["memory_bytes"]) == (1000, 5048)
    rows = [iterated, once]
    schema = schema_of(rows, RUN_COLUMNS)
    write_parquet(tmp_path / "runs.parquet", rows, schema)
    assert pq.read_table(tmp_path / "runs.parquet").to_pylist() == rows
