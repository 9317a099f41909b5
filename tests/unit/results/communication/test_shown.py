"""The parameters of all participants until an accuracy: C_acc(x) of Fed-ET, Table 3."""

from dataclasses import replace

from measured import rows_of
from traffic import iterative

from fedstage.results.communication.shown import goal_table


def run(method, data, scores, target, seed=0, published=None):
    """A run whose participants move 20 kB in a round, so 5000 parameters."""
    found = iterative(scores, target=target, published_params=published)
    return replace(found, settings={"Method": method, "Data": data, "seed": seed})


RUNS = [
    run("FedAvg", "cifar10", [50.0, 71.0, 60.0], 70.0, published=72e9),
    run("FedAvg", "cifar10", [50.0, 60.0, 70.0], 70.0, seed=1, published=72e9),
    run("FedAvg", "cifar100", [10.0, 20.0, 29.9], 30.0),
    run("FedAvg", "cifar100", [10.0, 20.0, 25.0], 30.0, seed=1),
    run("Fed-ET", "cifar10", [69.0, 60.0, 50.0], 70.0),
    run("Fed-ET", "cifar10", [69.0, 70.0, 50.0], 70.0, seed=1),
]


def goal_rows(*what):
    return rows_of(goal_table(*what, []))


def test_a_cell_is_the_mean_until_the_accuracy_and_says_where_it_is_not_reached():
    assert goal_rows(RUNS, ["Method"], ["Data"]) == [
        {
            "Method": "FedAvg",
            "Data = cifar10": "12.5 × 10³",
            "Data = cifar10: published": "72.0 × 10⁹",
            "Data = cifar100": "not reached",
        },
        {
            "Method": "Fed-ET",
            "Data = cifar10": "10.0 × 10³ (1 of 2 seeds)",
            "Data = cifar10: published": "–",
            "Data = cifar100": "–",
        },
    ]
