import pytest

from fedstage.settings.cells import as_text, selects


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1, "1"), (1.0, "1"), ("1.0", "1"), (0.1, "0.1"), ("0.10", "0.1"), (1e-3, "0.001"),
        (True, "true"), (None, "none"), ("fedavg", "fedavg"), ("", ""),
    ],
)  # fmt: skip
def test_equal_values_have_the_same_text(value, text):
    assert as_text(value) == text


POINT = {"method": "fedavg", "partition.alpha": 0.1, "evaluate": "aggregated checkpoints 2"}


def test_cells_are_those_with_all_the_values():
    for cells in (
        {}, {"method": "fedavg"}, {"method": ["feddf", "fedavg"]}, {"evaluate": "aggregated"},
        {"partition.alpha": "0.1", "method": "fedavg"}, {"evaluate": "aggregated checkpoints 2"},
    ):  # fmt: skip
        assert selects(cells, POINT), cells
    for cells in (
        {"method": "feddf"}, {"partition.alpha": 0.1, "method": "feddf"}, {"model": "resnet20"},
        {"evaluate": "aggregated checkpoints 4"},
    ):  # fmt: skip
        assert not selects(cells, POINT), cells
