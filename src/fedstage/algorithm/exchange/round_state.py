"""Round state: what clients and server keep from one round to the next, besides the model.

One file per round and group, with tensors named after the weights (NAME):

    server/NAME           c of SCAFFOLD; what FedProto, FedTGP and FedGen learn from all clients
    client/ID/NAME        c_i of SCAFFOLD, of client ID; with MOON, its last trained model; with
                          Ditto, its own model
    client/ID/drift/NAME  the sum of client ID's changes, with FedDyn and FedDC
    personal/ID/NAME      parts of the model that stay with client ID, such as running statistics
    optimizer/...         moments of the server's optimiser
    residual/ID/NAME      what compression left out of the changes of client ID
    residual/server/NAME  what it left out of the changes of the global model
    received/ID           the last round that client ID took part in, where the model is sent as
                          changes

Entries that have not been set yet are missing; c, c_i and residuals then count as zero.
"""

from collections.abc import Collection, Sequence
from pathlib import Path

import torch

from fedstage.algorithm.exchange.updates import Update, part
from fedstage.storage.tensors import open_tensors
from fedstage.weights import Tensors, renamed, together

_VARIATES = ("server/", "client/")
_PERSONAL = "personal/"
_OPTIMISER = "optimizer/"
_RESIDUAL = "residual/"
_RECEIVED = "received/"
_OF_SERVER = (_OPTIMISER, f"{_RESIDUAL}server/")


def read_state(paths: Sequence[Path]) -> Tensors:
    """Return the state that a group's round starts from; empty without files, in the first round.

    With secure aggregation there are two files: the server's part and the clients' part.
    """
    return together(*(open_tensors(path)[0] for path in paths))


def variates(state: Tensors) -> Tensors:
    """Return the part of a state that local trainers use: c and c_i, or clients' models."""
    return _starting(state, _VARIATES)


def variates_of(state: Tensors, client: int) -> Tensors:
    """Return the part of a state that one client's trainer uses: c, and its own c_i or model."""
    return _starting(state, ("server/", f"client/{client}/"))


def of_clients(state: Tensors) -> Tensors:
    """Return the part of a state that clients keep for local trainers: c_i, or their models."""
    return _starting(state, "client/")


def of_server(state: Tensors) -> Tensors:
    """Return the part of a state that all clients' trainers use, such as c."""
    return _starting(state, "server/")


def own_parts(state: Tensors, client: int) -> Tensors:
    """Return a client's parts of the model by NAME; empty if it has none yet."""
    return part(state, f"{_PERSONAL}{client}/")


def residual_of(state: Tensors, sender: int | str) -> Tensors:
    """Return what compression left out of a client's changes, or the `server`'s, by NAME."""
    return part(state, f"{_RESIDUAL}{sender}/")


def optimiser_state(state: Tensors) -> Tensors:
    """Return the state of the server's optimiser; empty before its first step."""
    return part(state, _OPTIMISER)


def rounds_since(state: Tensors, client: int, round_: int) -> int | None:
    """Return how many rounds before `round_` a client last took part, None if it never did."""
    received = state.get(f"{_RECEIVED}{client}")
    return None if received is None else round_ - int(received)


def next_parts(state: Tensors, updates: Sequence[Update], names: Collection[str]) -> Tensors:
    """Return all clients' parts of models: the weights of `updates` with these names."""
    kept = [_starting(state, _PERSONAL)]
    for update in updates:
        own = f"{_PERSONAL}{update.metadata['client']}/"
        kept.append(renamed(update.weights, {name: f"{own}{name}" for name in names}))
    return together(*kept)


def next_residuals(state: Tensors, updates: Sequence[Update]) -> Tensors:
    """Return the residuals of all clients after the participants' `updates`."""
    old = [n for n in state if n.startswith(_RESIDUAL) and not n.startswith(_OF_SERVER)]
    new = [
        _named(f"{_RESIDUAL}{update.metadata['client']}/", update.residual) for update in updates
    ]
    return together(renamed(state, {name: name for name in old}), *new)


def next_received(state: Tensors, updates: Sequence[Update]) -> Tensors:
    """Return the round in which each client last took part, even if its update was dropped."""
    received = {
        f"{_RECEIVED}{update.metadata['client']}": torch.tensor(update.metadata["round"])
        for update in updates
    }
    return together(_starting(state, _RECEIVED), received)


def next_models(state: Tensors, updates: Sequence[Update]) -> Tensors:
    """Return `state` with the models of `updates` as their clients' last models."""
    return _with_own(state, updates, [update.weights for update in updates])


def next_kept(state: Tensors, updates: Sequence[Update]) -> Tensors:
    """Return `state` with what the clients of `updates` keep."""
    return _with_own(state, updates, [update.kept for update in updates])


def _with_own(state: Tensors, updates: Sequence[Update], own: Sequence[Tensors]) -> Tensors:
    pairs = zip(updates, own, strict=True)
    return together(state, *(_named(f"client/{u.metadata['client']}/", one) for u, one in pairs))


def server_memory(state: Tensors) -> Tensors:
    """Return what only the server keeps: its optimiser's moments and its residual."""
    return _starting(state, _OF_SERVER)


def next_server_memory(optimiser: Tensors, residual: Tensors) -> Tensors:
    """Return what only the server keeps, from its optimiser's state and its residual."""
    return together(_named(_OPTIMISER, optimiser), _named(f"{_RESIDUAL}server/", residual))


def _starting(state: Tensors, prefix: str | tuple[str, ...]) -> Tensors:
    return renamed(state, {name: name for name in state if name.startswith(prefix)})


def _named(prefix: str, tensors: Tensors) -> Tensors:
    return renamed(tensors, {name: f"{prefix}{name}" for name in tensors})
