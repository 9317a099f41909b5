"""Which fixed accuracy a run is to reach."""

import pytest

from fedstage.errors import FedstageError
from fedstage.results.communication.goals import check_goal

POINTS = [
    {"method": method, "data": data, "partition.alpha": 0.1, "seed": 0}
    for method in ("fedavg", "fedet")
    for data in ("cifar10 train_size 5000", "cifar100")
]


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
