"""Digestion: a client's model learns the last round's logits of public samples.

This is a student's training, on a client instead of the server (FedMD's digest; DS-FL's
distillation).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import nn

from fedstage.algorithm.global_trainers.selection import from_server
from fedstage.algorithm.global_trainers.student import Taught, teach
from fedstage.algorithm.global_trainers.students import of_round, read_lesson
from fedstage.algorithm.global_trainers.transfers import loss_of
from fedstage.data.samples import read_labelled, read_public
from fedstage.protocol.server import without_early_buffer
from fedstage.protocol.teaching import teaching_of
from fedstage.settings.recipes import Recipe
from fedstage.training.passes import compute_logits


def digest(
    model: nn.Module,
    recipe: Recipe,
    received: Sequence[Path],
    public: Path,
    client: int,
    round_: int,
    info: Mapping[str, Any],
    server: nn.Module | None = None,
) -> None:
    """Train a client's model in place, with the recipe's `distillation` and the server's settings.

    Parameters
    ----------
    received : sequence of Path
        The logits of the participants of round `round_` - 1 on the `public` samples, or the labels
        that are kept of that and earlier rounds.
    server : nn.Module, optional
        The server's model, where clients learn its logits and the labels of `public`.

    Raises
    ------
    FedstageError
        If the model diverges.
    """
    teaching = teaching_of(recipe)
    device = next(model.parameters()).device
    if server is None:
        images = read_public(public, dict(info), device)
        taught = read_lesson(recipe, received, images, round_ - 1)
    else:
        images, labels = read_labelled(public, None, device, info)
        logits = compute_logits(server, images, info, recipe.numerics).to(device)
        taught = of_round(recipe, Taught(images, from_server(logits, labels)), round_ - 1)
    teach(
        model,
        taught,
        loss_of(teaching),
        without_early_buffer(teaching.server, round_),
        recipe.numerics,
        info,
        (recipe.seed, "digest", round_, client),
        f"client {client}, round {round_}, digesting",
    )
