from itertools import product

from fedstage.results.claims.comparisons import Cell, comparisons, label_pair
from fedstage.settings.claims import Claim

GRID = {"model": ["small", "large"], "method": ["a", "b", "c"], "partition.alpha": [1.0, 0.1]}
CELLS = [Cell(dict(zip(GRID, values, strict=True))) for values in product(*GRID.values())]


def claim(**form):
    return Claim(id="i", text="t", place="p", experiment="e", **form)


def compared(**form):
    pairs = comparisons(claim(**form), CELLS)
    return [(tuple(left.axes.values()), tuple(right.axes.values())) for left, right in pairs]


def test_both_sides_agree_on_all_axes_that_neither_names():
    found = compared(greater={"method": "a"}, than={"method": "b"})
    assert found == [
        ((model, "a", alpha), (model, "b", alpha))
        for model in GRID["model"]
        for alpha in GRID["partition.alpha"]
    ]


def test_each_of_several_cells_is_compared():
    where = {"model": "small", "partition.alpha": 0.1}
    found = compared(greater={"method": "a"}, than={"method": ["b", "c"]}, where=where)
    assert found == [(("small", "a", 0.1), ("small", other, 0.1)) for other in "bc"]


def test_sides_may_differ_in_more_than_one_axis():
    found = compared(
        greater={"method": "a", "model": "small"}, than={"method": "b", "model": "large"}
    )
    assert found == [(("small", "a", alpha), ("large", "b", alpha)) for alpha in (1.0, 0.1)]


def test_an_axis_that_one_side_names_is_free_on_the_other():
    found = compared(
        greater={"partition.alpha": 1.0}, than={}, where={"model": "small", "method": "a"}
    )
    assert found == [(("small", "a", 1.0), ("small", "a", 0.1))]


def test_no_cell_is_compared_with_itself():
    assert compared(greater={"method": "a"}, than={"method": "a"}) == []


def test_cells_that_are_not_there_are_compared_with_nothing():
    assert compared(greater={"method": "d"}, than={"method": "a"}) == []


def test_labels_say_what_differs():
    one = claim(greater={"method": "a"}, than={"method": "b"}, where={"model": "small"})
    pairs = comparisons(one, CELLS)
    assert [label_pair(one, pair, pairs) for pair in pairs] == [
        "a − b at partition.alpha = 1",
        "a − b at partition.alpha = 0.1",
    ]
    assert label_pair(one, pairs[0], pairs[:1]) == "a − b"
    ratio = claim(
        ratio={"method": "a", "model": "large"}, to={"method": "a", "model": "small"}, at_most=2.0
    )
    pairs = comparisons(ratio, CELLS)
    assert label_pair(ratio, pairs[0], pairs) == "large a / small a at partition.alpha = 1"
