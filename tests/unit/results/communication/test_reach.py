"""When runs are as accurate as another one, and what claims are judged by."""

from dataclasses import replace
from typing import get_args

import pyarrow.parquet as pq

from fedstage.results.communication.phases import Phase
from fedstage.results.communication.runs import Reached, RunTraffic, with_goals
from fedstage.results.communication.table import RUN_COLUMNS, run_rows
from fedstage.results.tables.columns import schema_of
from fedstage.results.tables.exact import write_parquet
from fedstage.settings.scores import Communicated

MODEL = 1000
ALL = 20 * MODEL  # of ten clients, up and down
FENS = {"method": "fens"}


def run(method, scores, seed=0, alpha=0.1, best=None):
    """A run over rounds, each of which takes one model up and one down."""
    course = [Reached(t, t * MODEL, t * MODEL, t * ALL, score) for t, score in enumerate(scores, 1)]
    rounds = len(scores)
    return RunTraffic(
        settings={"method": method, "alpha": alpha, "seed": seed},
        phases=[Phase(1, "federated_round", rounds, rounds * MODEL, rounds * MODEL, rounds * ALL)],
        course=course,
        best=course[best - 1] if best else None,
        one_shot=2 * MODEL,
        held=MODEL,
        iterative=rounds > 1,
        communicates=True,
        memory_mib=None,
    )


def ensemble(score, **place):
    phases = [
        Phase(1, "local_model", 0, MODEL, 0, 10 * MODEL),
        Phase(1, "ensemble", 0, 0, 4 * MODEL, 40 * MODEL),
    ]
    phases.append(Phase(1, "round", 50, 500, 500, 10_000))
    return replace(run("fens", [score], **place), phases=phases, held=5 * MODEL)


def reached(runs, cells=FENS):
    return [one.reached and one.reached.round for one in with_goals(runs, cells)]


def test_the_first_round_that_is_as_accurate_counts():
    runs = [run("fedadam", [40.0, 60.0, 50.0, 70.0]), ensemble(60.0)]
    assert reached(runs) == [2, None]
    assert reached(runs, None) == [None, None]
    # Never, and from the start.
    assert reached([run("fedadam", [40.0, 50.0]), ensemble(60.0)]) == [None, None]
    assert reached([run("fedadam", [70.0, 50.0]), ensemble(60.0)]) == [1, None]


def test_each_run_has_its_own_seed_and_cell_to_reach():
    runs = [
        run("fedadam", [1.0, 2.0, 3.0], seed=0),
        run("fedadam", [1.0, 2.0, 3.0], seed=1),
        run("fedadam", [1.0, 2.0, 3.0], seed=0, alpha=1.0),
        run("fedavg", [3.0, 4.0], seed=1),
        ensemble(2.0, seed=0),
        ensemble(3.0, seed=1),
        ensemble(1.0, seed=0, alpha=1.0),
    ]
    assert reached(runs) == [2, 3, 1, 1, None, None, None]


def test_a_fixed_accuracy_is_that_of_all_runs():
    runs = [run("fedadam", [40.0, 60.0, 50.0, 70.0]), run("fedavg", [10.0, 20.0]), ensemble(60.0)]
    assert reached(runs, 60) == [2, None, 1]
    assert reached(runs, {"method": {"fedadam": 70, "fedavg": 10, "fens": 61}}) == [4, 1, None]
    low = run("fedavg", [30.0, 50.0], alpha=1.0)
    assert reached([*runs[:2], low], {"alpha": {"0.1": 60, "1": 30}}) == [2, None, 1]


def test_parameters_are_counted_until_then():
    runs = [run("fedadam", [40.0, 60.0, 70.0]), run("fedavg", [10.0, 20.0]), ensemble(60.0)]
    iterative, never, one_shot = run_rows(with_goals(runs, 60))
    assert (iterative["params"], iterative["params_to_reach"]) == (3 * ALL / 4, 2 * ALL / 4)
    assert iterative["bytes_to_reach"] == 4 * MODEL
    assert (never["params"], never["params_to_reach"]) == (2 * ALL / 4, None)
    assert one_shot["params_to_reach"] == ALL / 4
    assert run_rows(with_goals(runs, None))[0]["params_to_reach"] is None


def test_a_run_without_a_reference_has_nothing_to_reach():
    runs = with_goals([run("fedadam", [1.0, 2.0], seed=5), ensemble(1.0)], FENS)
    assert [one.target for one in runs] == [None, None]


def test_claims_are_judged_by_a_row_a_run(tmp_path):
    runs = [run("fedadam", [40.0, 60.0, 70.0], best=3), ensemble(60.0)]
    iterative, one_shot = run_rows(with_goals(runs, FENS))
    assert list(iterative) == ["method", "alpha", "seed", *get_args(Communicated)]
    assert (iterative["bytes"], iterative["times_one_shot"]) == (6000, 3.0)
    assert (iterative["bytes_to_best"], iterative["times_one_shot_to_best"]) == (6000, 3.0)
    assert (iterative["bytes_to_reach"], iterative["times_one_shot_to_reach"]) == (4000, 2.0)
    assert (iterative["bytes_up_a_round"], iterative["ensemble_bytes"]) == (1000, None)
    assert (one_shot["bytes"], one_shot["times_one_shot"]) == (6000, 3.0)
    assert (one_shot["bytes_up_a_round"], one_shot["ensemble_bytes"]) == (10, 4000)
    assert (one_shot["bytes_to_best"], one_shot["times_one_shot_to_reach"]) == (None, None)
    assert (iterative["memory_bytes"], one_shot["memory_bytes"]) == (1000, 5000)
    rows = [iterative, one_shot]
    schema = schema_of(rows, RUN_COLUMNS)
    write_parquet(tmp_path / "runs.parquet", rows, schema)
    assert pq.read_table(tmp_path / "runs.parquet").to_pylist() == rows


def test_what_travels_nowhere_is_no_round():
    (row,) = run_rows([replace(run("local", [50.0]), phases=[])])
    assert (row["bytes"], row["times_one_shot"]) == (0, 0)
    assert row["bytes_up_a_round"] is None


def test_axes_keep_their_types():
    rows = run_rows([ensemble(1.0)])
    types = {field.name: str(field.type) for field in schema_of(rows, RUN_COLUMNS)}
    assert types["method"] == "string"
    assert types["alpha"] == types["bytes"] == "double"
    assert types["seed"] == "int64"
