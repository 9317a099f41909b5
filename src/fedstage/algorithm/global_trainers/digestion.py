"""Digestion: a client's model learns on public samples what the last round's participants said.

It is what a student on the server does, on a client (FedMD's digest; DS-FL's distillation).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import nn

from fedstage.algorithm.global_trainers.lesson import of_round, read_lesson
from fedstage.algorithm.global_trainers.selection import from_server
from fedstage.algorithm.global_trainers.student import Taught, teach
from fedstage.algorithm.global_trainers.transfers import transfer
from fedstage.data.samples import read_labelled, read_public
from fedstage.settings.lines import Line
from fedstage.settings.server import in_round
from fedstage.training.inference import compute_logits


def digest(
    model: nn.Module,
    line: Line,
    said: Sequence[Path],
    public: Path,
    client: int,
    round: int,
    info: Mapping[str, Any],
    server: nn.Module | None = None,
) -> None:
    """Train a client's model in place, with the line's `distillation` and the server's settings.

    Parameters
    ----------
    said : sequence of Path
        The logits of the participants of round `round` - 1 on the `public` samples, or the labels
        that are kept of those and earlier ones.
    server : nn.Module, optional
        The server's model, where clients learn what it says and the labels of `public`.

    Raises
    ------
    FedstageError
        If the model diverges.
    """
    assert line.server is not None, "checked by Line: who digests has the server's settings"
    device = next(model.parameters()).device
    if server is None:
        images = read_public(public, dict(info), device)
        heard = read_lesson(line, said, images, round - 1)
    else:
        images, labels = read_labelled(public, None, device, info)
        logits = compute_logits(server, images, info, line.numerics).to(device)
        heard = of_round(line, Taught(images, from_server(logits, labels)), round - 1)
    teach(
        model,
        heard,
        transfer(line.distillation).loss(line.distillation, line.server),
        in_round(line.server, round),
        line.numerics,
        info,
        (line.seed, "digest", round, client),
        f"client {client}, round {round}, digesting",
    )
