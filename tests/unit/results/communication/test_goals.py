"""Which fixed accuracy a run is to reach."""

import pytest

from fedstage.errors import FedstageError
from fedstage.results.communication.goals import by_value, check_goal, fixed_goal
from fedstage.settings.experiments import Communication, is_fixed

BY_DATA = {"data": {"cifar10": 70, "cifar100": 30.5}}
POINTS = [
    {"method": method, "data": data, "partition.alpha": 0.1, "seed": 0}
    for method in ("fedavg", "fedet")
    for data in ("cifar10 train_size 5000", "cifar100")
]


def goals(reach):
    return [fixed_goal(reach, point) for point in POINTS]


def test_one_accuracy_is_that_of_all():
    assert goals(70) == [70] * 4


def test_an_axis_says_which_accuracy_a_run_is_to_reach():
    assert goals(BY_DATA) == [70, 30.5, 70, 30.5]
    # Numbers are the same however they are written, as in the runs file.
    assert goals({"partition.alpha": {"0.10": 55}}) == [55] * 4
    assert by_value(BY_DATA) == {"data": {"cifar10": 70, "cifar100": 30.5}}


@pytest.mark.parametrize("reach", [None, {"method": "fedavg"}, {"method": ["fedavg", "fedet"]}])
def test_no_accuracy_is_fixed_where_cells_are_to_be_kept_up_with(reach):
    assert not is_fixed(reach)
    assert goals(reach) == [None] * 4
    assert by_value(reach) == {}
    check_goal("e", reach, POINTS)


@pytest.mark.parametrize(
    "reach", [70, BY_DATA, {"partition.alpha": {0.1: 60}}, {"data": "cifar100"}]
)
def test_settings_keep_a_goal_as_it_is(reach):
    assert Communication(reach=reach).reach == reach
    check_goal("e", reach, POINTS)


@pytest.mark.parametrize(
    ("reach", "told"),
    [
        ({"data": {"cifar10": 70}}, "reach.data: 'cifar100': missing; there are cifar10"),
        (
            {"data": {"cifar10": 70, "cifar100": 30, "svhn": 80}},
            "reach: data = 'svhn': no cell of e; use one of",
        ),
        ({"seed": {0: 70}}, "reach: seed: no axis of e; use one of method"),
        ({"method": {"fedavg": 70}}, "reach.method: 'fedet': missing; there are fedavg"),
    ],
    ids=str,
)
def test_each_cell_has_a_goal_and_each_goal_a_cell(reach, told):
    with pytest.raises(FedstageError, match=f"^e: communication.{told}"):
        check_goal("e", reach, POINTS)
