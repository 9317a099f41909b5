"""Stage `aggregation`: from the updates of a group to its averaged model w_{t,k}."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from fedstage.aggregation import average_weights, move_towards, payload_bytes
from fedstage.artefacts import Weights, load_tensors, save_table, save_tensors
from fedstage.config import Line, Model, re_estimates
from fedstage.engine.batch_norm import re_estimate
from fedstage.engine.devices import prepare
from fedstage.errors import FedstageError
from fedstage.lines import binding, group_slots, keeps_statistics, model_of
from fedstage.local_trainers import LocalTrainer, local_trainer
from fedstage.reading import (
    new_model,
    parameters_of,
    read_info,
    read_line,
    read_public,
    state_of,
)
from fedstage.round_state import next_statistics
from fedstage.updates import Update, answered, read_updates

#: A row a participant of a round and group. Bytes count tensors, not file headers.
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
    begun, _ = load_tensors(start)
    known = load_tensors(state)[0] if state else {}
    trainer = local_trainer(settings.local.name)
    valid = answered(received)
    notes = {key: received[0].notes[key] for key in ("round", "group")}
    architecture = model_of(settings, notes["group"])
    parameters = parameters_of(_skeleton(architecture, info), begun)
    # The bytes of what is sent do not depend on its values, so the group's own state will do.
    down = payload_bytes(begun, trainer.sent_down(parameters, known))
    model = _next_model(settings, valid, begun, parameters) if valid else begun
    if valid and re_estimates(settings):
        model = _with_statistics(settings, architecture, model, info, public)
    notes["samples"] = sum(update.notes["samples"] for update in valid)
    save_tensors(output, model, notes)
    save_table(participants, _rows(received, down), PARTICIPANTS_SCHEMA)
    if new_state is not None:
        clients = _possible_clients(settings, notes["group"])
        after = _next_state(trainer, known, valid, clients)
        if keeps_statistics(settings):
            after |= next_statistics(known, valid, parameters)
        save_tensors(new_state, after, notes)


def _next_model(
    settings: Line, updates: Sequence[Update], begun: Weights, parameters: Weights
) -> Weights:
    """Return w_{t,k}, but for statistics that are estimated anew."""
    chosen = settings.aggregation
    weights = [
        1.0 if chosen.weights == "uniform" else float(update.notes["samples"]) for update in updates
    ]
    average = average_weights([update.weights for update in updates], weights)
    model = move_towards(begun, average, chosen.learning_rate, parameters)
    if chosen.batch_norm == "local":
        model |= {name: value for name, value in begun.items() if name not in parameters}
    return model


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


def _rows(updates: Sequence[Update], down: int) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {
        name: [update.notes.get(name) for update in updates]
        for name in ("round", "group", "slot", "client", "samples", "loss")
    }
    columns["steps"] = [
        update.notes.get("steps", update.notes.get("diverged_at")) for update in updates
    ]
    columns["dropped"] = [update.diverged for update in updates]
    columns["bytes_up"] = [payload_bytes(update.weights, update.payload) for update in updates]
    columns["bytes_down"] = [down] * len(updates)
    return columns


def _possible_clients(line: Line, group: int) -> int:
    """Return how many clients there are for a group: those not bound to another architecture."""
    bound = binding(line)
    if bound is None:
        return line.clients
    architecture = bound.slots[group_slots(line, group).start]
    return sum(number in (None, architecture) for number in bound.clients)


def _next_state(
    trainer: LocalTrainer, known: Weights, updates: Sequence[Update], clients: int
) -> Weights:
    payloads = {update.notes["client"]: update.payload for update in updates}
    return trainer.next_state(known, payloads, clients)
