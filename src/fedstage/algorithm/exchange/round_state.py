"""Round state: what clients and server remember from one round to the next, but the model.

One file a round and group, named in the manner of the weights (NAME):

    server/NAME           c of SCAFFOLD
    client/ID/NAME        c_i of SCAFFOLD, of client ID
    statistics/ID/NAME    running statistics of batch normalisation, of client ID (``local``)
    optimizer/...         moments of the server's optimiser
    residual/ID/NAME      what compression left out of the changes of client ID
    residual/server/NAME  what it left out of the changes of the global model
    heard/ID              the last round that client ID took part in, where the model is sent as
                          changes

What has not been set yet is missing, and c, c_i and residuals are then zero. Where control variates
are shared by all global models, a group's file holds what its own participants have added to them,
and the variates are the sums over all groups' files: each group can write its part without the
others.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from fedstage.algorithm.exchange.updates import Update
from fedstage.storage.tensors import Weights, load_tensors

_STATISTICS = "statistics/"
_RESIDUAL = "residual/"
_OPTIMISER = "optimizer/"
_HEARD = "heard/"
_OF_SERVER = (_OPTIMISER, f"{_RESIDUAL}server/")
_VARIATES = ("server/", "client/")


def read_state(paths: Sequence[Path], group: int) -> Weights:
    """Return the state that a group's round starts from; empty without files, in the first round.

    Parameters
    ----------
    paths : sequence of Path
        The state of the group, or with shared control variates those of all groups: all else in
        them is each group's own.
    """
    read = {notes["group"]: tensors for tensors, notes in map(load_tensors, paths)}
    ordered = [read[number] for number in sorted(read)]
    names = sorted({name for tensors in ordered for name in variates(tensors)})
    own = read.get(group, {})
    others = {name: value for name, value in own.items() if not name.startswith(_VARIATES)}
    return {name: _sum(ordered, name) for name in names} | others


def variates(state: Weights) -> Weights:
    """Return the part of a state that the local trainer knows: c and c_i."""
    return {name: value for name, value in state.items() if name.startswith(_VARIATES)}


def own_statistics(state: Weights, client: int) -> Weights:
    """Return a client's running statistics by NAME; empty if it has none yet."""
    return _part(state, f"{_STATISTICS}{client}/")


def residual_of(state: Weights, sender: int | str) -> Weights:
    """Return what compression left out of a client's changes, or the `server`'s, by NAME."""
    return _part(state, f"{_RESIDUAL}{sender}/")


def optimiser_state(state: Weights) -> Weights:
    """Return the state of the server's optimiser; empty before its first step."""
    return _part(state, _OPTIMISER)


def rounds_since(state: Weights, client: int, round: int) -> int | None:
    """Return how many rounds before `round` a client last took part, None if it never did."""
    heard = state.get(f"{_HEARD}{client}")
    return None if heard is None else round - int(heard)


def next_statistics(state: Weights, updates: Sequence[Update], parameters: Weights) -> Weights:
    """Return the running statistics of all clients after the participants' `updates`.

    Parameters
    ----------
    parameters : dict
        The model's parameters; what else an update's weights hold are running statistics.
    """
    kept = {name: value for name, value in state.items() if name.startswith(_STATISTICS)}
    for update in updates:
        new = {name: value for name, value in update.weights.items() if name not in parameters}
        kept |= _named(f"{_STATISTICS}{update.notes['client']}/", new)
    return kept


def next_residuals(state: Weights, updates: Sequence[Update]) -> Weights:
    """Return the residuals of all clients after the participants' `updates`."""
    kept = {
        name: value
        for name, value in state.items()
        if name.startswith(_RESIDUAL) and not name.startswith(_OF_SERVER)
    }
    for update in updates:
        kept |= _named(f"{_RESIDUAL}{update.notes['client']}/", update.residual)
    return kept


def next_heard(state: Weights, updates: Sequence[Update]) -> Weights:
    """Return which round each client last took part in; whose update was dropped did as well."""
    kept = {name: value for name, value in state.items() if name.startswith(_HEARD)}
    return kept | {
        f"{_HEARD}{update.notes['client']}": torch.tensor(update.notes["round"])
        for update in updates
    }


def server_memory(state: Weights) -> Weights:
    """Return what the server alone remembers: moments, and what it left out."""
    return {name: value for name, value in state.items() if name.startswith(_OF_SERVER)}


def next_server_memory(optimiser: Weights, residual: Weights) -> Weights:
    """Return what the server remembers of a round, from its optimiser's state and its residual."""
    return _named(_OPTIMISER, optimiser) | _named(f"{_RESIDUAL}server/", residual)


def _part(state: Weights, prefix: str) -> Weights:
    return {
        name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)
    }


def _named(prefix: str, tensors: Mapping[str, torch.Tensor]) -> Weights:
    return {f"{prefix}{name}": value for name, value in tensors.items()}


def _sum(parts: Sequence[Weights], name: str) -> torch.Tensor:
    """Add up one tensor of several files, in float64 and in the order of the groups."""
    values = [part[name] for part in parts if name in part]
    if len(values) == 1:
        return values[0]
    return torch.stack([value.double() for value in values]).sum(0).to(values[0].dtype)
