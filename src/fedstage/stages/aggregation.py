"""Stage `aggregation`: from the updates of a group to its averaged model w_{t,k}."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from fedstage.algorithm.aggregation.averages import (
    average_weights,
    mean_change,
    move_towards,
    payload_bytes,
)
from fedstage.algorithm.aggregation.server_optimizers import server_step
from fedstage.algorithm.exchange.compression import transmit
from fedstage.algorithm.exchange.round_state import (
    next_heard,
    next_residuals,
    next_server_memory,
    next_statistics,
    optimiser_state,
    residual_of,
    rounds_since,
    server_memory,
    variates,
)
from fedstage.algorithm.exchange.traffic import bytes_down, bytes_up
from fedstage.algorithm.exchange.updates import Update, answered, read_updates
from fedstage.algorithm.local_trainers import LocalTrainer, local_trainer
from fedstage.data.samples import (
    new_model,
    parameters_of,
    read_info,
    read_line,
    read_public,
    state_of,
)
from fedstage.errors import FedstageError
from fedstage.plan.sharing import binding, group_slots, keeps_statistics, model_of
from fedstage.settings.lines import Line, re_estimates
from fedstage.settings.models import Model
from fedstage.storage.tensors import Weights, load_tensors, save_table, save_tensors
from fedstage.training.batch_norm import re_estimate
from fedstage.training.devices import prepare

#: A row a participant of a round and group. Bytes count tensors, not file headers; of a compressed
#: change what it is encoded in.
PARTICIPANTS_SCHEMA = pa.schema(
    [
        ("round", pa.int32()),
        ("group", pa.int32()),
        ("slot", pa.int32()),
        ("client", pa.int32()),
        ("samples", pa.int64()),
        ("steps", pa.int64()),
        ("loss", pa.float64()),  # mean training loss; null where the update was dropped
        ("dropped", pa.bool_()),
        ("bytes_up", pa.int64()),
        ("bytes_down", pa.int64()),
    ]
)


def aggregation(
    *,
    line: Path,
    info: Path,
    start: Path,
    updates: list[Path],
    state: Path | None = None,
    public: Path | None = None,
    output: Path,
    participants: Path,
    new_state: Path | None = None,
) -> None:
    """Average the updates of a group; write the model, its participants and the round state.

    Participants that diverged do not count: the weights are those of the others, and where none is
    left the group keeps the model (and the state) that it started from.

    By setting the parameters go on from the start by a step of a server optimiser, and by what is
    left of it where the change of the global model is compressed as well.

    Running statistics of batch normalisation, which the papers do not mention, are by setting

    - ``average``: averaged as the parameters are, as FedDF's code does;
    - ``local``: never averaged. The new model has those of `start`, which are the initial model's
      (mean 0, variance 1) until a distillation sets them on the public images, so that without one
      only the clients' models are of use. Each client goes on from its own, which the round state
      holds: SiloBN (Andreux et al. 2020). FedBN (Li et al. 2021) keeps scales and shifts as well;
    - ``re_estimate``: those of the averaged parameters on the public images, as FedBE's code does
      for its student. On clients' data it would take a second message of each.

    Parameters
    ----------
    state : Path, optional
        The group's own round state of the round before.
    public : Path, optional
        The public images, for ``re_estimate``.

    Raises
    ------
    FedstageError
        If running statistics are to be estimated and there are no public images.
    """
    settings = read_line(line, Line)
    received = read_updates(updates)
    notes = {key: received[0].notes[key] for key in ("round", "group")}
    architecture = model_of(settings, notes["group"])
    begun, _ = load_tensors(start)
    known = load_tensors(state)[0] if state else {}
    parameters = parameters_of(_skeleton(architecture, info), begun)
    given = _Given(settings, received, begun, parameters, known)
    model, memory = begun, server_memory(known)
    if given.answered:
        model, memory = _next_model(given)
        if re_estimates(settings):
            model = _with_statistics(settings, architecture, model, info, public)
    notes["samples"] = sum(update.notes["samples"] for update in given.answered)
    save_tensors(output, model, notes)
    save_table(participants, _rows(received) | _traffic(given), PARTICIPANTS_SCHEMA)
    if new_state is not None:
        save_tensors(new_state, _next_state(given) | memory, notes)


@dataclass(frozen=True)
class _Given:
    """What a round of a group is aggregated from.

    Attributes
    ----------
    received : list of Update
        Of all participants, those that diverged among them.
    begun, parameters : dict
        w*_{t-1,k}, and the part of it that is no buffer.
    known : dict
        The round state of the round before.
    """

    settings: Line
    received: list[Update]
    begun: Weights
    parameters: Weights
    known: Weights

    @cached_property
    def answered(self) -> list[Update]:
        return answered(self.received)

    @property
    def trainer(self) -> LocalTrainer:
        return local_trainer(self.settings.local.name)


def _next_model(given: _Given) -> tuple[Weights, Weights]:
    """Return w_{t,k}, but for statistics that are estimated anew, and what the server remembers."""
    chosen, how = given.settings.aggregation, given.settings.compression
    model, moments = _step(given)
    left: Weights = {}
    if how.name == "stc" and how.downstream:
        ended = {name: model[name] for name in given.parameters}
        residual = residual_of(given.known, "server")
        arrived, left = transmit(how, given.parameters, ended, residual)
        model |= arrived
    if chosen.batch_norm == "local":
        buffers = given.begun.keys() - given.parameters.keys()
        model |= {name: given.begun[name] for name in buffers}
    return model, next_server_memory(moments, left)


def _step(given: _Given) -> tuple[Weights, Weights]:
    """Return the average, its parameters where the server's step leads, and the moments of that."""
    chosen, updates = given.settings.aggregation, given.answered
    uniform = chosen.weights == "uniform"
    weights = [1.0 if uniform else float(update.notes["samples"]) for update in updates]
    models = [update.weights for update in updates]
    average = average_weights(models, weights)
    shares = [weight / sum(weights) for weight in weights]
    scales = given.trainer.scales([update.payload for update in updates], shares)
    if chosen.server_optimizer.name == "average" and scales is None:
        return move_towards(given.begun, average, chosen.learning_rate, given.parameters), {}
    scaled = [a * b for a, b in zip(shares, scales or [1.0] * len(shares), strict=True)]
    factors = [chosen.learning_rate * factor for factor in scaled]
    change = mean_change(given.begun, models, factors, given.parameters)
    before = optimiser_state(given.known)
    moved, moments = server_step(chosen.server_optimizer, given.parameters, change, before)
    return average | moved, moments


def _with_statistics(
    settings: Line, architecture: Model, weights: Weights, info: Path, public: Path | None
) -> Weights:
    if public is None:
        raise FedstageError("public = null: aggregation.batch_norm = re_estimate needs images")
    device, about = prepare(settings.numerics), read_info(info)
    model = new_model(architecture, about, device, settings.numerics)
    model.load_state_dict(weights)
    re_estimate(model, read_public(public, about, device), about, settings.numerics)
    return state_of(model)


def _skeleton(architecture: Model, info: Path) -> Any:
    import torch

    return new_model(architecture, read_info(info), torch.device("meta"))


def _rows(updates: Sequence[Update]) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {
        name: [update.notes.get(name) for update in updates]
        for name in ("round", "group", "slot", "client", "samples", "loss")
    }
    columns["steps"] = [
        update.notes.get("steps", update.notes.get("diverged_at")) for update in updates
    ]
    columns["dropped"] = [update.diverged for update in updates]
    return columns


def _traffic(given: _Given) -> dict[str, list[Any]]:
    how, known = given.settings.compression, given.known
    # The bytes of what is sent do not depend on its values, so the group's own state will do.
    beside = payload_bytes(given.trainer.sent_down(given.parameters, variates(known)))
    about = [update.notes for update in given.received]
    missed = [rounds_since(known, notes["client"], notes["round"]) for notes in about]
    return {
        "bytes_up": [bytes_up(how, update, given.parameters) for update in given.received],
        "bytes_down": [
            beside + bytes_down(how, rounds, given.begun, given.parameters) for rounds in missed
        ],
    }


def _possible_clients(line: Line, group: int) -> int:
    """Return how many clients there are for a group: those not bound to another architecture."""
    bound = binding(line)
    if bound is None:
        return line.clients
    architecture = bound.slots[group_slots(line, group).start]
    return sum(number in (None, architecture) for number in bound.clients)


def _next_state(given: _Given) -> Weights:
    """Return what clients remember of the round, and what is remembered of them."""
    settings, known, updates = given.settings, given.known, given.answered
    payloads = {update.notes["client"]: update.payload for update in updates}
    clients = _possible_clients(settings, given.received[0].notes["group"])
    samples = {update.notes["client"]: int(update.notes["samples"]) for update in updates}
    after = given.trainer.next_state(settings.local, variates(known), payloads, samples, clients)
    after |= next_residuals(known, updates)
    if keeps_statistics(settings):
        after |= next_statistics(known, updates, given.parameters)
    if settings.compression.name == "stc" and settings.compression.downstream:
        after |= next_heard(known, given.received)
    return after
