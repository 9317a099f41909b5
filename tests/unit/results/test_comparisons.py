from itertools import product

from fedstage.results.comparisons import Cell, comparisons, label_pair
from fedstage.settings.scores import Claim

GRID = {"model": ["small", "large"], "method": ["a", "b", "c"], "partition.alpha": [1.0, 0.1]}
CELLS = [Cell(dict(zip(GRID, values, strict=True))) for values in product(*GRID.values())]


def claim(**form):
    return Claim(id="i", text="t", place="p", experiment="e", **form)


def compared(**form):
    pairs = comparisons(claim(**form), CELLS)
    return [(tuple(left.axes.values()), tuple(right.axes.values())) for left, right in pairs]


def test_both_sides_agree_on_all_axes_that_neither_names():
    assert compared(greater={"method": "a"}, than={"method": "b"}) == [
        ((model, "a", alpha), (model, "b", alpha))
        for model in GRID["model"]
        for alpha in GRID["partition.alpha"]
    ]


def test_sides_are_cells_of_several_values_or_axes_and_never_the_same_cell():
    small = {"model": "small", "partition.alpha": 0.1}
    found = compared(greater={"method": "a"}, than={"method": ["b", "c"]}, where=small)
    assert found == [(("small", "a", 0.1), ("small", other, 0.1)) for other in "bc"]
    two = {"greater": {"method": "a", "model": "small"}, "than": {"method": "b", "model": "large"}}
    expected = [(("small", "a", alpha), ("large", "b", alpha)) for alpha in (1.0, 0.1)]
    assert compared(**two) == expected
    # An axis that one side names is free on the other.
    where = {"model": "small", "method": "a"}
    free = compared(greater={"partition.alpha": 1.0}, than={}, where=where)
    assert free == [(("small", "a", 1.0), ("small", "a", 0.1))]
    assert compared(greater={"method": "a"}, than={"method": "a"}) == []
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
