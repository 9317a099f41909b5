"""Tables of costs, bytes, seconds, forgetting and clients, from rows that are made up."""

import numpy as np
import pandas as pd
import pytest
from tests.unit.results.conftest import tidy_of

from fedstage.results.client_tables import client_tables
from fedstage.results.cost_tables import (
    cost_table,
    retention_table,
    time_table,
    traffic_tables,
)
from fedstage.results.measures import cells_of, of_runs, traffic, until_best, until_reached
from fedstage.results.tidy import COST, COSTS, typed

RUNS = {("fedavg", 0.1): [60.0, 62.0, 64.0], ("fedsdd", 0.1): [70.0, 72.0, 74.0]}
ROUNDS = 4


@pytest.fixture
def scores():
    """Runs of four rounds that move 100 bytes a round (fedavg) or 300."""
    tidy = tidy_of(RUNS, rounds=ROUNDS)
    moved = tidy.frame.assign(
        measure="bytes",
        value=tidy.frame["round"] * np.where(tidy.frame["method"] == "fedavg", 100.0, 300.0),
    )
    everyone = moved.assign(measure="params", value=moved["value"] / 2)
    return tidy._replace(frame=pd.concat([tidy.frame, moved, everyone], ignore_index=True))


@pytest.fixture
def costs(scores):
    """Costs of these runs: seconds of two stages, travels, and a model of 50 bytes."""
    rows = []
    for (method, alpha), values in RUNS.items():
        size = 100 if method == "fedavg" else 300
        for seed, _ in enumerate(values):
            at = {"method": method, "partition.alpha": alpha, "seed": seed}
            for stage, side, numbers in (
                ("local_training", "clients", {"seconds": 8.0 + seed, "rounds": ROUNDS}),
                ("aggregation", "server", {"seconds": 1.0, "rounds": ROUNDS}),
                ("training", "round", {"seconds": 8.0, "median_s": 2.0 + seed}),
                ("federated_round", "travel", {
                    "rounds": ROUNDS, "bytes_up": size * ROUNDS / 2,
                    "bytes_down": size * ROUNDS / 2, "everyone": size * ROUNDS * 2}),
                ("one model", "unit", {"bytes_up": size / 2, "bytes_down": size / 2}),
                ("prediction", "memory", {"memory_bytes": 2.0**20}),
            ):  # fmt: skip
                rows.append({**at, "stage": stage, "side": side, **numbers})
    frame = pd.DataFrame(rows).reindex(columns=[*scores.run, *COST, *COSTS])
    axes = {name: typed(frame[name].tolist()) for name in scores.run}
    return scores._replace(frame=frame.assign(**axes))


def test_what_travels_is_added_up_in_one_unit_for_all_methods(scores, costs):
    found = traffic(scores, costs)
    assert found["bytes"].tolist() == [400.0] * 3 + [1200.0] * 3
    assert found["params"].tolist() == [200.0] * 3 + [600.0] * 3
    assert found["bytes_up_a_round"].tolist() == [50.0] * 3 + [150.0] * 3
    assert found["times_one_shot"].tolist() == pytest.approx([400 / 300] * 3 + [4.0] * 3)
    assert found["bytes_to_reach"].isna().all()


def test_a_fixed_accuracy_is_reached_in_the_first_round_that_has_it(scores, costs):
    fixed = scores._replace(header=scores.header.model_copy(update={"reach": 62.0}))
    found = until_reached(fixed)
    assert found["round"].tolist()[1:] == [4, 2, 1, 1, 1]
    assert pd.isna(found["round"][0])
    assert found["bytes"].tolist()[1:] == [400.0, 200.0, 300.0, 300.0, 300.0]
    first, _ = traffic_tables(fixed, costs)
    assert first.shown["Parameters"].tolist() == ["150, 2 of 3 seeds", "150"]
    cells = cells_of(fixed, "bytes_to_reach", costs)
    assert [len(cell.values) for cell in cells] == [0, 3], "those that reach it are the fast ones"


def test_cells_give_their_last_score_to_others_of_the_seed(scores, costs):
    cells = {"method": ["fedavg"]}
    reach = scores._replace(header=scores.header.model_copy(update={"reach": cells}))
    found = until_reached(reach)
    assert found["target"].tolist()[3:] == [60.0, 62.0, 64.0]
    assert found["target"][:3].isna().all()
    assert found["round"].tolist()[3:] == [1, 1, 1]


def test_validation_samples_choose_the_best_round(scores):
    checked = scores.frame[scores.frame["measure"] == "top1_accuracy"].assign(role="validation")
    checked.loc[checked["round"] == 2, "value"] = 99.0
    both = scores._replace(frame=pd.concat([scores.frame, checked], ignore_index=True))
    assert until_best(both)["round"].tolist() == [2] * 6
    assert until_best(scores)["round"].isna().all()


def test_costs_have_seconds_of_both_sides_and_the_paired_difference(scores, costs):
    shown = cost_table(scores, costs).shown
    assert shown["Clients (s)"].tolist() == ["9.00", "9.00"]
    assert shown["Server (s)"].tolist() == ["1.00", "1.00"]
    assert shown["Memory (MiB)"].tolist() == ["1.00", "1.00"]
    assert shown["Difference to the first"].tolist() == ["–", "+10.00"]
    assert "ε" not in shown


def test_seconds_of_a_round_are_medians_of_runs(costs, scores):
    assert time_table(costs).shown["Training"].tolist() == ["3.00 ± 1.00"] * 2
    assert of_runs(scores, "training_s", costs)["value"].tolist() == [2.0, 3.0, 4.0] * 2


def test_forgetting_is_a_mean_over_the_rounds_that_have_it(scores):
    rows = scores.frame[scores.frame["measure"] == "top1_accuracy"].assign(role="participants")
    more = [
        rows.assign(measure=name, value=value)[rows["round"] > (name != "current")]
        for name, value in (
            ("current", rows["value"]),
            ("previous", rows["value"] - rows["round"]),
            ("forget_score", rows["round"].astype(float)),
        )
    ]
    both = scores._replace(frame=pd.concat([scores.frame, rows, *more], ignore_index=True))
    assert of_runs(both, "forget_score")["value"].tolist() == [3.0] * 6
    assert of_runs(both, "fluctuation")["value"].tolist() == [1.0] * 6
    last = [value for values in RUNS.values() for value in values]
    assert of_runs(both, "final_accuracy")["value"].tolist() == last
    current = of_runs(both, "current")["value"]
    assert current.tolist() == [value - 1 for value in last], "rounds two to four"
    assert retention_table(both).shown["Forget score"].tolist() == ["3.00 ± 0.00"] * 2


def test_clients_have_their_names_and_classes_their_samples(scores):
    at = scores.frame[scores.frame["round"] == ROUNDS].drop_duplicates(scores.run)
    rows = []
    for client in (0, 1):
        about = {"role": "test", "client": client, "label": None}
        rows.append(at.assign(measure="own_samples", value=10.0 + client, **about))
        rows.append(at.assign(measure="own_accuracy", value=50.0 + client, **about))
    both = scores._replace(frame=pd.concat([scores.frame.assign(client=None, label=None), *rows]))
    (table,) = client_tables(both, {"clients": ["Lyon", "Oslo"]})
    assert table.shown["Client"].tolist() == ["Lyon", "Oslo"]
    assert table.shown["Samples"].tolist() == ["10", "11"]
    assert table.shown.iloc[1, 2:].tolist() == ["51.00 ± 0.00"] * 2
