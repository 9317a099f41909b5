import pytest

from fedstage.errors import FedstageError
from fedstage.results.published.matching import counterparts
from fedstage.results.published.rows import Row
from fedstage.settings.scores import Published
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


OWN_DATA = {**MATCH, "data": {"digits": {"dataset": "cifar10"}}}
IN_FULL = {"data": {"digits test 200": None, "digits": {"dataset": "cifar10"}}}
ALPHAS = {"partition.alpha": {0.5: {"partition_alpha": 0.1}, 10: None}}
#: What is found by a rule: points, settings of the counterpart, and the numbers of the points.
FOUND = {
    "axes with columns of their own need no match": ([point(alpha=0.1), point()], {}, [1, 0]),
    "a value may be several columns": ([point("two", 0.1)], {}, [5]),
    "seeds have the same number": (
        [point("two", 0.1, 0), point("two", 0.1, 1), point("two", 1.0, 0)], {}, [5, 5, 4],
    ),
    "null is nothing published": ([point("own"), point("fedavg")], {}, [None, 0]),
    "an axis may have the values of another column": (
        [point("fedsdd", 1.0, **{"ensemble.checkpoints": r}) for r in (2, 1)],
        {"axes": {"ensemble.checkpoints": "R"}}, [4, 2],
    ),
    "an axis that the paper lacks has no say": (
        [point(**{"client.learning_rate": rate}) for rate in (0.1, 0.2)], {}, [0, 0],
    ),
    "what all cells have in common": (
        [{"method": "two", "seed": 0}], {"where": {"partition_alpha": 0.1}}, [5],
    ),
    "an axis goes before what is in common": (
        [point("two", 0.1)], {"where": {"partition_alpha": 1.0, "R": 1}}, [5],
    ),
    "choices with settings match by their name": ([point(data="cifar10 train_size 5")], {}, [0]),
    "or as a match has it": ([point(data="digits test 200")], {"match": OWN_DATA}, [0]),
    "a value in full goes before its name": (
        [point(data="digits test 200"), point(data="digits")], {"match": IN_FULL}, [None, 0],
    ),
    "numbers may be keys of a match": (
        [point(alpha=alpha) for alpha in (0.5, 10, 10.0)], {"match": ALPHAS}, [1, None, None],
    ),
    "another metric": ([{"method": "fedavg", "seed": 0}], {"metric": "seconds"}, [7]),
}  # fmt: skip


@pytest.mark.parametrize(("points", "settings", "numbers"), FOUND.values(), ids=FOUND)
def test_each_point_has_its_number(points, settings, numbers):
    assert found(points, **settings) == numbers


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


def test_a_cell_with_two_rows_names_what_would_tell_them_apart():
    told = refused([point("fedsdd")])
    assert "2 rows of fedsdd, table2, have" in told
    assert told.endswith("name one by R")


def test_unknown_table_or_metric():
    assert refused([point()], table="table9").endswith(
        ".table = 'table9': use one of table2, table3"
    )
    assert refused([point()], metric="auc").endswith("'auc': use one of top1_accuracy, seconds")
