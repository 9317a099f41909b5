"""The smallest valid settings: of runs, of an experiment and of a configuration.

Each is a function that returns a dictionary of its own, in which the arguments replace what stands
here. Tests that are about other values name those alone.
"""

from typing import Any

Raw = dict[str, Any]

#: What clients train with, and the server where it distils.
CLIENT: Raw = {"epochs": 1, "batch_size": 16, "learning_rate": 0.05}
SERVER: Raw = {"steps": 5, "batch_size": 16, "learning_rate": 0.05}


def one_shot(**changes: Any) -> Raw:
    """Return a one-shot recipe, of what all recipes have: its aggregator is the average."""
    return {
        "data": "digits",
        "clients": 4,
        "partition": "iid",
        "model": "cnn_small",
        "client": {**CLIENT},
        "seed": 0,
    } | changes


def federated(**changes: Any) -> Raw:
    """Return a recipe in rounds, which are FedAvg's."""
    return one_shot(participants=2) | changes


def distilled(**changes: Any) -> Raw:
    """Return a recipe in rounds with a server that distils where a method says so."""
    return federated(server={**SERVER}) | changes


def experiment(**changes: Any) -> Raw:
    """Return an experiment of a round of FedAvg."""
    return {
        "title": "The title",
        "base": federated(rounds=1),
        "grid": {"method": ["fedavg"]},
        "scales": {"default": None},
    } | changes


def config(**experiments: Raw) -> Raw:
    """Return a configuration of experiments by their names, of which the first is the target."""
    return {"targets": [*experiments][:1], "experiments": experiments}
