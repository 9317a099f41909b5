import pytest

from fedstage.errors import FedstageError
from fedstage.results.published.matching import counterparts
from fedstage.results.published.rows import Row
from fedstage.settings.published import Published
from fedstage.settings.validation import validate


def row(table="table2", metric="top1_accuracy", value=1.0, **keys):
    return Row(table, metric, {key: str(text) for key, text in keys.items()}, value, 0.5, 3)


#: FedAvg and FedSDD with one or two checkpoints, at two alphas, on CIFAR-10.
ROWS = [
    row(method=method, partition_alpha=alpha, dataset="cifar10", value=value, **settings)
    for value, (method, alpha, settings) in enumerate(
        (method, alpha, settings)
        for method, settings in (("fedavg", {}), ("fedsdd", {"R": 1}), ("fedsdd", {"R": 2}))
        for alpha in ("1", "0.1")
    )
] + [row("table3", value=100.0, method="fedavg"), row(metric="seconds", value=7.0, method="fedavg")]
MATCH = {"method": {"two": {"method": "fedsdd", "R": 2}, "own": None}}


def found(points, match=MATCH, **settings):
    raw = {"paper": "fedsdd", "table": "table2", "match": match, **settings}
    published = validate(Published, raw, "here")
    rows = counterparts("e/mini: table", published, points, ROWS)
    return [None if one is None else one.value for one in rows]


def point(method="fedavg", alpha=1.0, seed=0, **more):
    return {"method": method, "partition.alpha": alpha, "seed": seed, **more}


def test_axes_with_columns_of_their_own_need_no_match():
    assert found([point(alpha=0.1), point(alpha=1.0)]) == [1.0, 0.0]


def test_a_value_may_be_several_columns():
    assert found([point("two", 0.1)]) == [5.0]


def test_seeds_have_the_same_number():
    assert found([point("two", 0.1, 0), point("two", 0.1, 1), point("two", 1.0, 0)]) == [5, 5, 4]


def test_null_is_nothing_published():
    assert found([point("own"), point("fedavg")]) == [None, 0.0]


def test_an_axis_may_have_the_values_of_another_column():
    points = [point("fedsdd", 1.0, **{"ensemble.checkpoints": r}) for r in (2, 1)]
    assert found(points, axes={"ensemble.checkpoints": "R"}) == [4.0, 2.0]


def test_an_axis_that_the_paper_does_not_have_says_nothing():
    points = [point(**{"client.learning_rate": rate}) for rate in (0.1, 0.2)]
    assert found(points) == [0.0, 0.0]


def test_what_all_cells_have_in_common_is_said_once():
    assert found([{"method": "two", "seed": 0}], where={"partition_alpha": 0.1}) == [5.0]


def test_an_axis_goes_before_what_is_in_common():
    assert found([point("two", 0.1)], where={"partition_alpha": 1.0, "R": 1}) == [5.0]


def test_choices_with_settings_match_by_their_name():
    assert found([point(data="cifar10 train_size 500")]) == [0.0]
    small = {**MATCH, "data": {"digits": {"dataset": "cifar10"}}}
    assert found([point(data="digits test 200")], match=small) == [0.0]


def test_a_value_in_full_goes_before_its_name():
    match = {"data": {"digits test 200": None, "digits": {"dataset": "cifar10"}}}
    assert found([point(data="digits test 200"), point(data="digits")], match) == [None, 0.0]


def test_numbers_may_be_keys_of_a_match():
    match = {"partition.alpha": {0.5: {"partition_alpha": 0.1}, 10: None}}
    assert found([point(alpha=0.5), point(alpha=10), point(alpha=10.0)], match) == [1, None, None]


def test_an_exception_is_laid_over_what_the_axes_say():
    cells = [
        {"at": {"method": "two", "partition.alpha": 1.0}, "row": {"R": 1}},
        {"at": {"method": "fedavg", "partition.alpha": [1.0, 2.0]}, "row": None},
        {"at": {"method": ["two", "fedavg"]}, "row": {"R": 2, "method": "fedsdd"}},
        {"at": {"method": "own"}, "row": {"method": "fedavg"}},
    ]
    points = [point("two"), point("two", 0.1), point("fedavg"), point("fedavg", 0.1), point("own")]
    assert found(points, cells=cells) == [2.0, 5.0, None, 5.0, 0.0]


def test_another_metric_of_the_same_table():
    assert found([{"method": "fedavg", "seed": 0}], metric="seconds") == [7.0]


# --- errors ---------------------------------------------------------------------------------------


def refused(points, **settings):
    with pytest.raises(FedstageError) as caught:
        found(points, **settings)
    message = str(caught.value)
    assert message.startswith("e/mini: table.published")
    assert "\n" not in message
    return message


def test_a_cell_without_a_row_names_the_column_at_fault():
    told = refused([point(), point("feddf")])
    assert "method = feddf, partition.alpha = 1: no rows of fedsdd, table2, have" in told
    assert told.endswith("method must be one of fedavg, fedsdd")
    assert refused([point()], where={"K": 4}).endswith("K must be one of nothing: no row has it")


def test_values_that_do_not_go_together_are_told():
    told = refused([point("fedavg")], where={"R": 2})
    assert told.endswith("each value is there, but not together")


def test_a_cell_with_two_rows_names_what_would_tell_them_apart():
    told = refused([point("fedsdd")])
    assert "2 rows of fedsdd, table2, have" in told
    assert told.endswith("name one by R")


def test_a_value_that_a_match_does_not_have_is_told():
    told = refused([point(rounds=30)], match={"rounds": {25: {"R": 1}, 100: None}})
    assert told == "e/mini: table.published.match.rounds: '30': missing; there are 25, 100"


def test_unknown_table_or_metric():
    assert refused([point()], table="table9").endswith(
        ".table = 'table9': use one of table2, table3"
    )
    assert refused([point()], metric="auc").endswith("'auc': use one of top1_accuracy, seconds")
