import pytest

from fedstage.results.cells import as_text, names_of, selects, show_point


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1, "1"), (1.0, "1"), ("1.0", "1"), (0.1, "0.1"), ("0.10", "0.1"), (1e-3, "0.001"),
        (True, "true"), (None, "none"), ("fedavg", "fedavg"), ("", ""),
    ],
)  # fmt: skip
def test_equal_values_have_the_same_text(value, text):
    assert as_text(value) == text


def test_a_choice_with_settings_goes_by_its_name_too():
    assert names_of("data", "cifar10 train_size 500") == ("cifar10 train_size 500", "cifar10")
    assert names_of("data", "name cifar10 train_size 500")[1] == "cifar10"
    assert names_of("client.schedule", "step milestones 0.5")[1] == "step"
    assert names_of("data", "cifar10") == ("cifar10",)


def test_what_is_no_choice_has_one_name():
    assert names_of("client.milestones", "0.5 0.75") == ("0.5 0.75",)


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


def test_a_point_is_shown_as_in_tables():
    assert show_point({"method": "fedavg", "partition.alpha": 1.0}) == (
        "method = fedavg, partition.alpha = 1"
    )
