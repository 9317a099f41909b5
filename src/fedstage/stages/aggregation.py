"""Stage `aggregation`: from the updates of a group to its averaged model w_{t,k}."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from fedstage.aggregation import average_weights, payload_bytes
from fedstage.artefacts import Weights, load_tensors, save_table, save_tensors
from fedstage.config import Line
from fedstage.local_trainers import LocalTrainer, local_trainer
from fedstage.reading import new_model, parameters_of, read_info, read_line
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
    output: Path,
    participants: Path,
    new_state: Path | None = None,
) -> None:
    """Average the updates of a group; write the model, its participants and the round state.

    Participants that diverged do not count: the weights are those of the others, and where none is
    left the group keeps the model (and the state) that it started from.
    """
    settings = read_line(line, Line)
    received = read_updates(updates)
    begun, _ = load_tensors(start)
    known = load_tensors(state)[0] if state else {}
    trainer = local_trainer(settings.local.name)
    valid = answered(received)
    parameters = parameters_of(_skeleton(settings, info), begun)
    down = payload_bytes(begun, trainer.sent_down(parameters, known))
    model = _average(settings, valid) if valid else begun
    notes = {key: received[0].notes[key] for key in ("round", "group")}
    notes["samples"] = sum(update.notes["samples"] for update in valid)
    save_tensors(output, model, notes)
    save_table(participants, _rows(received, down), PARTICIPANTS_SCHEMA)
    if new_state is not None:
        save_tensors(new_state, _next_state(trainer, known, valid, settings.clients), notes)


def _average(settings: Line, updates: Sequence[Update]) -> Weights:
    uniform = settings.aggregation.weights == "uniform"
    weights = [1.0 if uniform else float(update.notes["samples"]) for update in updates]
    return average_weights([update.weights for update in updates], weights)


def _skeleton(settings: Line, info: Path) -> Any:
    import torch

    return new_model(settings.model, read_info(info), torch.device("meta"))


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


def _next_state(
    trainer: LocalTrainer, known: Weights, updates: Sequence[Update], clients: int
) -> Weights:
    payloads = {update.notes["client"]: update.payload for update in updates}
    return trainer.next_state(known, payloads, clients)
