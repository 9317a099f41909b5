import pandas as pd
import pytest
from measured import described, runs_file

from fedstage.errors import FedstageError
from fedstage.experiments.runs_file import ExperimentRuns
from fedstage.outcomes.comparisons import Cell
from fedstage.results.claims.judging import cells_of, correct, values_of_runs, values_of_table
from fedstage.results.claims.verdicts import CONTRADICTED, HOLDS, NIL, UNDECIDED, judge
from fedstage.settings.scores import Claim, Family
from fedstage.settings.validation import validate

POINTS = [
    {"method": method, "seed": seed, "participants": 8}
    for method in ("fedavg", "feddf")
    for seed in (0, 1)
]


def experiment(published=None, **others):
    numbers = [{"value": published[point["method"]]} if published else None for point in POINTS]
    printed = {
        metric: [{"value": values[point["method"]]} for point in POINTS]
        for metric, values in others.items()
    }
    runs = runs_file(
        described(point, published=number, published_in={of: printed[of][i] for of in printed})
        for i, (point, number) in enumerate(zip(POINTS, numbers, strict=True))
    )
    return validate(ExperimentRuns, runs, "here")


def shown(cells):
    return [(cell.axes["method"], dict(cell.values), cell.published) for cell in cells]


def test_seeds_are_gathered_in_their_cell():
    cells = cells_of(experiment(), {0: 1.0, 1: 2.0, 2: 3.0, 3: 4.0})
    assert shown(cells) == [("fedavg", {0: 1.0, 1: 2.0}, None), ("feddf", {0: 3.0, 1: 4.0}, None)]
    assert cells[0].axes == {"method": "fedavg", "participants": 8}


def test_a_cell_with_a_run_without_a_number_is_not_measured():
    """The runs that reach a goal are the fast ones; runs that were not made are only fewer."""
    cells = cells_of(experiment(), {0: 1.0, 2: 3.0, 3: float("nan")})
    assert [dict(cell.values) for cell in cells] == [{0: 1.0}, {}]


def test_published_numbers_are_in_the_metric_of_the_claim():
    of = experiment({"fedavg": 88.53, "feddf": 87.98}, seconds={"fedavg": 123.6, "feddf": 223.6})

    def published(metric=None):
        return [cell.published for cell in cells_of(of, {}, metric)]

    assert (published(), published("seconds")) == ([88.53, 87.98], [123.6, 223.6])
    assert published("minutes") == [None, None]


def frame():
    rows = [
        {"run": run, "round": t, "evaluated": "x", "top1_accuracy": 10.0 * run + t, "loss": t}
        for run in range(2)
        for t in (1, 2)
    ]
    return pd.DataFrame(rows)


def test_a_metric_is_that_of_the_last_round():
    assert values_of_runs(frame(), "top1_accuracy") == {0: 2.0, 1: 12.0}
    assert values_of_runs(frame(), "loss") == {0: 2.0, 1: 2.0}


@pytest.mark.parametrize("metric", ["seconds", "evaluated"])
def test_a_metric_that_is_not_measured_is_told(metric):
    told = f"metric = '{metric}': not measured; use one of round, top1_accuracy, loss$"
    with pytest.raises(FedstageError, match=told):
        values_of_runs(frame(), metric)


def timings(**changes):
    columns = {
        "method": ["feddf", "feddf", "fedavg"],
        "seed": [0, 1, 0],
        "participants": [8.0, 8.0, 8.0],
        "seconds": [223.6, 224.0, 123.6],
    }
    return pd.DataFrame(columns | changes)


def test_a_table_of_other_measurements_is_matched_by_axes_and_seed():
    assert values_of_table(timings(), experiment(), "seconds") == {2: 223.6, 3: 224.0, 0: 123.6}


def test_a_table_without_a_column_or_with_a_row_twice_is_told():
    with pytest.raises(FedstageError, match=r"^measurements: minutes: no such column"):
        values_of_table(timings(), experiment(), "minutes")
    with pytest.raises(FedstageError, match=r"^measurements: participants: no such column"):
        values_of_table(timings().drop(columns="participants"), experiment(), "seconds")
    told = "method = feddf, seed = 0, participants = 8: is listed twice; keep one"
    with pytest.raises(FedstageError, match=told):
        values_of_table(timings(seed=[0, 0, 0]), experiment(), "seconds")


# --- Holm's correction ----------------------------------------------------------------------------

SOMEWHAT = [2.0, 3.0, 2.2]  # p = 0.0164
CLEARLY = [10.0, 11.0, 9.5]  # p = 0.0018


def judged(name, differences, **more):
    sides = {"greater": {"method": "a"}, "than": {"method": "b"}}
    claim = Claim(id=name, text="t", place="p", experiment="e", **(sides | more))
    one = {seed: 60.0 + value for seed, value in enumerate(differences)}
    return judge(
        claim, [Cell({"method": "a"}, one), Cell({"method": "b"}, dict.fromkeys(one, 60.0))]
    )


def primary(name, differences):
    return judged(name, differences, primary=True, margin=1.0)


def test_primary_claims_are_corrected_by_holm_and_others_are_not():
    weak, strong, other = primary("a", SOMEWHAT), primary("b", CLEARLY), judged("c", SOMEWHAT)
    first, second, third = correct([weak, strong, other], [])
    assert first == weak
    assert second.p[HOLDS] == pytest.approx(2 * strong.p[HOLDS])
    assert third == other
    same = correct([primary(name, SOMEWHAT) for name in "abcd"], [])
    assert [one.p[HOLDS] for one in same] == pytest.approx([4 * weak.p[HOLDS]] * 4)
    assert {one.verdict for one in same} == {UNDECIDED}


def test_primary_claims_of_the_file_that_are_not_measured_count():
    families = [Family(claims=["a", "none"], primary=5), Family(claims=["b"], primary=1)]
    first, second, none = correct(
        [primary("a", CLEARLY), primary("b", SOMEWHAT), primary("none", [])], families
    )
    assert first.p[HOLDS] == pytest.approx(5 * primary("a", CLEARLY).p[HOLDS])
    assert second == primary("b", SOMEWHAT)
    assert none.p == {}


def test_all_p_values_of_a_claim_are_corrected():
    near = primary("a", [0.1, 0.2, 0.3])
    (one,) = correct([near], [Family(claims=["a"], primary=40)])
    assert (near.verdict, one.verdict) == (NIL, UNDECIDED)
    assert one.p == {name: min(1.0, 40 * p) for name, p in near.p.items()}
    below = correct([primary("a", [-5.0, -5.0, -5.0])], [Family(claims=["a"], primary=5)])
    assert below[0].verdict == CONTRADICTED
