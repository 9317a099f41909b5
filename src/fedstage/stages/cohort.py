"""Stage `cohort`: several participants of a round and group train in one process."""

import os
from pathlib import Path

import torch

from fedstage.data.samples import read_line
from fedstage.settings.lines import Line
from fedstage.stages.local_training import participant
from fedstage.training.devices import prepare
from fedstage.training.streams import take_turns


def cohort(
    *,
    line: Path,
    round: int,
    group: int,
    slots: list[int],
    data: Path,
    info: Path,
    clients: Path,
    participation: Path,
    start: Path,
    state: list[Path] | None = None,
    outputs: list[Path],
) -> None:
    """Train the clients of `slots` as the stage `local_training` does; `outputs` are their updates.

    On a GPU up to `execution.clients_per_gpu` of them train side by side, on a CPU each in turn.
    """
    settings = read_line(line, Line)
    device = prepare(settings.numerics)
    works = (
        participant(
            settings=settings,
            round=round,
            group=group,
            slot=slot,
            data=data,
            info=info,
            clients=clients,
            participation=participation,
            start=start,
            state=state,
            output=output,
        )
        for slot, output in zip(slots, outputs, strict=True)
    )
    take_turns(works, at_a_time(device), device)


def at_a_time(device: torch.device) -> int:
    """Return how many clients train side by side, which changes no byte: see `warm.environment`."""
    if device.type != "cuda":
        return 1  # side by side they would only push each other out of the caches
    return int(os.environ.get("FEDSTAGE_CLIENTS_PER_GPU") or 1)
