"""Round state: what clients and server keep from one round to the next, besides the model.

One file a round and group, with tensors named after the weights (NAME):

    server/NAME           c of SCAFFOLD
    client/ID/NAME        c_i of SCAFFOLD, of client ID; or with MOON the model it has ended in
    statistics/ID/NAME    running statistics of batch normalisation, of client ID (``local``)
    optimizer/...         moments of the server's optimiser
    residual/ID/NAME      what compression left out of the changes of client ID
    residual/server/NAME  what it left out of the changes of the global model
    heard/ID              the last round that client ID took part in, where the model is sent as
                          changes

What has not been set yet is missing; c, c_i and residuals then count as zero. Where all global
models share control variates, a group's file holds what its own participants have added to them,
and the variates are the sums over all groups' files: each group can write its part without the
others.
"""

from collections.abc import Sequence
from pathlib import Path

import torch

from fedstage.algorithm.exchange.updates import Update, part
from fedstage.storage.tensors import load_tensors
from fedstage.weights import Weights

_VARIATES = ("server/", "client/")
_STATISTICS = "statistics/"
_OPTIMISER = "optimizer/"
_RESIDUAL = "residual/"
_HEARD = "heard/"
_OF_SERVER = (_OPTIMISER, f"{_RESIDUAL}server/")


def read_state(paths: Sequence[Path], group: int) -> Weights:
    """Return the state that a group's round starts from; empty without files, in the first round.

    With shared control variates, the files are those of all groups; the rest of them is each
    group's own.
    """
    read = {metadata["group"]: tensors for tensors, metadata in map(load_tensors, paths)}
    ordered = [read[number] for number in sorted(read)]
    names = sorted({name for tensors in ordered for name in variates(tensors)})
    own = read.get(group, {})
    others = {name: value for name, value in own.items() if not name.startswith(_VARIATES)}
    return {name: _sum(ordered, name) for name in names} | others


def variates(state: Weights) -> Weights:
    """Return the part of a state that local trainers use: c and c_i, or clients' models."""
    return _starting(state, _VARIATES)


def variates_of(state: Weights, client: int) -> Weights:
    """Return what a client's local trainer uses: c, and its own c_i or model."""
    return _starting(state, ("server/", f"client/{client}/"))


def own_statistics(state: Weights, client: int) -> Weights:
    """Return a client's running statistics by NAME; empty if it has none yet."""
    return part(state, f"{_STATISTICS}{client}/")


def residual_of(state: Weights, sender: int | str) -> Weights:
    """Return what compression left out of a client's changes, or the `server`'s, by NAME."""
    return part(state, f"{_RESIDUAL}{sender}/")


def optimiser_state(state: Weights) -> Weights:
    """Return the state of the server's optimiser; empty before its first step."""
    return part(state, _OPTIMISER)


def rounds_since(state: Weights, client: int, round: int) -> int | None:
    """Return how many rounds before `round` a client last took part, None if it never did."""
    heard = state.get(f"{_HEARD}{client}")
    return None if heard is None else round - int(heard)


def next_statistics(state: Weights, updates: Sequence[Update], parameters: Weights) -> Weights:
    """Return all clients' running statistics: the weights of `updates` that are no parameters."""
    kept = _starting(state, _STATISTICS)
    for update in updates:
        new = {name: value for name, value in update.weights.items() if name not in parameters}
        kept |= _named(f"{_STATISTICS}{update.metadata['client']}/", new)
    return kept


def next_residuals(state: Weights, updates: Sequence[Update]) -> Weights:
    """Return the residuals of all clients after the participants' `updates`."""
    kept = _starting(state, _RESIDUAL)
    kept = {name: value for name, value in kept.items() if not name.startswith(_OF_SERVER)}
    for update in updates:
        kept |= _named(f"{_RESIDUAL}{update.metadata['client']}/", update.residual)
    return kept


def next_heard(state: Weights, updates: Sequence[Update]) -> Weights:
    """Return the round in which each client last took part, with a dropped update or not."""
    return _starting(state, _HEARD) | {
        f"{_HEARD}{update.metadata['client']}": torch.tensor(update.metadata["round"])
        for update in updates
    }


def server_memory(state: Weights) -> Weights:
    """Return what only the server keeps: its optimiser's moments and its residual."""
    return _starting(state, _OF_SERVER)


def next_server_memory(optimiser: Weights, residual: Weights) -> Weights:
    """Return what only the server keeps, from its optimiser's state and its residual."""
    return _named(_OPTIMISER, optimiser) | _named(f"{_RESIDUAL}server/", residual)


def _starting(state: Weights, prefix: str | tuple[str, ...]) -> Weights:
    return {name: value for name, value in state.items() if name.startswith(prefix)}


def _named(prefix: str, tensors: Weights) -> Weights:
    return {f"{prefix}{name}": value for name, value in tensors.items()}


def _sum(parts: Sequence[Weights], name: str) -> torch.Tensor:
    """Add up one tensor of several files, in float64 and in the order of the groups."""
    values = [part[name] for part in parts if name in part]
    if len(values) == 1:
        return values[0]
    return torch.stack([value.double() for value in values]).sum(0).to(values[0].dtype)
