"""The table for people: its columns, marks and legend."""

import pytest
from tests.shared.experiments import WORKFLOW
from tests.unit.results.conftest import ACCURACIES, tidy_of

from fedstage.results.documents import as_markdown
from fedstage.results.table import BEST, STAR, score_table
from fedstage.results.tidy import read_tidy
from fedstage.settings.scores import Number


def of_header(tidy, **changes):
    return tidy._replace(header=tidy.header.model_copy(update=changes))


def marks_of(table):
    return {
        (table.shown.iat[line, 0], table.shown.columns[column]): mark
        for (line, column), mark in table.marks.items()
    }


def test_columns_are_the_axes_and_the_mean(tidy):
    table = score_table(tidy)
    assert list(table.shown) == ["Method", "α = 0.1", "α = 1"]
    assert table.shown.iloc[1].tolist() == ["FedAvg", "60.83 ± 0.76", "81.00 ± 2.00"]
    assert "after round 2: mean ± standard deviation (n−1) over 3 seeds" in table.above[0]


def test_an_axis_with_one_value_says_nothing():
    one = {key: of for key, of in ACCURACIES.items() if key[1] == 1.0}
    assert list(score_table(tidy_of(one)).shown) == ["Method", "Top-1 accuracy (%)"]


def test_the_best_federated_mean_is_bold_and_others_are_tested(tidy):
    marks = marks_of(score_table(tidy))
    assert marks == {("FedSDD", "α = 0.1"): BEST}, "of equal means none is the best"
    lower = ACCURACIES | {("fedsdd", 1.0): [80.0, 82.5, 80.0]}
    assert marks_of(score_table(tidy_of(lower)))["FedSDD", "α = 1"] == STAR


def test_at_smoke_scale_nothing_is_bold_and_a_line_says_why(tidy):
    table = score_table(of_header(tidy, scale="smoke"))
    assert not table.marks
    assert table.above[0].startswith("Smoke scale")


def test_a_column_that_was_asked_for_or_says_something():
    measures = {
        "bytes_up": lambda method, _: {"fedsdd": 20.0, "fedavg": 10.0}.get(method, 0.0),
        "loss": lambda *_: 0.5,
    }
    table = score_table(tidy_of(ACCURACIES, measures=measures, also=["loss"]))
    assert list(table.shown)[3:] == ["Bytes a round", "Loss"]
    assert table.shown["Bytes a round"].tolist() == ["–", "10 B", "20 B"]
    equal = {"bytes_up": lambda method, _: 0.0 if method == "local_only" else 10.0}
    assert len(score_table(tidy_of(ACCURACIES, measures=equal)).shown.columns) == 3


def test_own_classes_are_explained_where_clients_have_models_of_their_own():
    one = {key: of for key, of in ACCURACIES.items() if key[1] == 1.0}
    measures = {
        "own_mean": lambda _, value: value + 5,
        "own_std": lambda *_: 1.0,
        "client_std": lambda method, _: 9.0 if method == "local_only" else None,
    }
    table = score_table(tidy_of(one, measures=measures))
    assert "On a client's own classes (%)" in table.shown
    assert any(line.startswith("**On a client's own classes (%)**") for line in table.below)
    shared = tidy_of(one, measures=measures | {"client_std": lambda *_: None})
    assert "On a client's own classes (%)" not in score_table(shared).shown


@pytest.fixture
def published(tidy):
    cells = [
        cell.model_copy(update={"published": {"top1_accuracy": number} if cell.federated else {}})
        for cell, value in zip(tidy.header.cells, range(64, 70), strict=True)
        for number in [Number(value=float(value), std=2.0, seeds=3)]
    ]
    more = {"published": "P, Table 1", "published_at": "Published in P.", "measured_at": "Here."}
    return of_header(tidy, cells=cells, **more)


def test_differences_to_published_numbers_only_at_the_papers_scale(published):
    table = score_table(of_header(published, scale="paper"))
    heads = ["α = 0.1", "α = 0.1: Published (%)", "α = 0.1: Difference (points)"]
    assert list(table.shown)[1:4] == heads
    assert table.shown.iloc[1, 3].startswith("−4.17 [")
    assert "difference" in table.exact


def test_other_scales_say_that_the_setting_is_another(published):
    table = score_table(published)
    assert list(table.shown)[1:3] == ["α = 0.1", "α = 0.1: Published (other setting)"]
    assert table.shown.iloc[0, 2] == "–", "a row without a published number"
    assert not any(name.startswith("difference") for name in table.exact)
    assert "Orders may be compared, numbers may not." in " ".join(table.below)


@pytest.mark.parametrize("path", sorted((WORKFLOW / "docs/results").rglob("scores.parquet")))
def test_legends_of_all_committed_tables_are_short(path):
    tidy = read_tidy(path, sealed=False)
    if tidy.header.metric.endswith("_s"):
        return
    table = score_table(tidy)
    assert len(table.below) <= 5
    assert as_markdown([table]).count("\n# ") == 0


def test_ensembles_and_distillations_have_columns_on_request():
    measures = {
        "disagreement": lambda method, _: 12.0 if method == "fedsdd" else None,
        "ensemble_gain": lambda method, _: -0.5 if method == "fedsdd" else None,
        "agreement_before": lambda method, _: 50.0 if method == "fedsdd" else None,
        "agreement": lambda method, _: 75.0 if method == "fedsdd" else None,
    }
    one = {key: of for key, of in ACCURACIES.items() if key[1] == 1.0}
    asked = ["disagreement", "ensemble_gain", "agreement"]
    shown = score_table(tidy_of(one, measures=measures, also=asked)).shown
    assert shown.iloc[2, 2:].tolist() == ["12.00", "−0.50", "50.00 → 75.00"]
    assert shown.iloc[1, 2:].tolist() == ["–"] * 3
