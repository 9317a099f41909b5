"""Round state: what clients and server remember from one round to the next, but the model.

One file a round and group, named in the manner of the weights (NAME):

    server/NAME         c of SCAFFOLD
    client/ID/NAME      c_i of SCAFFOLD, of client ID
    statistics/ID/NAME  running statistics of batch normalisation, of client ID (``local``)

What has not been set yet is missing, and c and c_i are then zero. Where control variates are shared
by all global models, a group's file holds what its own participants have added to them, and the
variates are the sums over all groups' files: each group can write its part without the others.
"""

from collections.abc import Sequence
from pathlib import Path

import torch

from fedstage.artefacts import Weights, load_tensors
from fedstage.updates import Update

_STATISTICS = "statistics"


def read_state(paths: Sequence[Path], group: int) -> Weights:
    """Return the state that a group's round starts from; empty without files, in the first round.

    Parameters
    ----------
    paths : sequence of Path
        The state of the group, or with shared control variates those of all groups: of these, each
        has its own running statistics.
    """
    read = {notes["group"]: tensors for tensors, notes in map(load_tensors, paths)}
    ordered = [read[number] for number in sorted(read)]
    variates = {name for tensors in ordered for name in tensors if not _is_statistic(name)}
    statistics = {name: value for name, value in read.get(group, {}).items() if _is_statistic(name)}
    return {name: _sum(ordered, name) for name in sorted(variates)} | statistics


def own_statistics(state: Weights, client: int) -> Weights:
    """Return a client's running statistics by NAME; empty if it has none yet."""
    prefix = f"{_STATISTICS}/{client}/"
    return {
        name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)
    }


def next_statistics(state: Weights, updates: Sequence[Update], parameters: Weights) -> Weights:
    """Return the running statistics of all clients after the participants' `updates`.

    Parameters
    ----------
    parameters : dict
        The model's parameters; what else an update's weights hold are running statistics.
    """
    kept = {name: value for name, value in state.items() if _is_statistic(name)}
    new = {
        f"{_STATISTICS}/{update.notes['client']}/{name}": value
        for update in updates
        for name, value in update.weights.items()
        if name not in parameters
    }
    return kept | new


def _is_statistic(name: str) -> bool:
    return name.startswith(f"{_STATISTICS}/")


def _sum(parts: Sequence[Weights], name: str) -> torch.Tensor:
    """Add up one tensor of several files, in float64 and in the order of the groups."""
    values = [part[name] for part in parts if name in part]
    if len(values) == 1:
        return values[0]
    return torch.stack([value.double() for value in values]).sum(0).to(values[0].dtype)
