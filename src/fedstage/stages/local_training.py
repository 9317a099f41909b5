"""Stage `local_training`: participants of a round train from a global model of their group."""

import os
import time
from collections.abc import Generator
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from fedstage.algorithm.exchange.round_state import read_state
from fedstage.algorithm.global_trainers.digestion import digest
from fedstage.algorithm.global_trainers.features import targets_of
from fedstage.algorithm.local_trainers.fedgkd import losses_of
from fedstage.algorithm.local_trainers.participant import (
    Lesson,
    Participant,
    Start,
    train_participant,
)
from fedstage.data.bags import Samples
from fedstage.data.participation import client_of
from fedstage.plan.inputs import LocalTrainingInputs
from fedstage.protocol.groups import model_of
from fedstage.randomness import seed_globals
from fedstage.settings.recipes import Recipe
from fedstage.stages import Seconds
from fedstage.stages.inputs import begin, load_model, read_own
from fedstage.storage.tensors import load_tensors, save_tensors
from fedstage.training.batches import take_turns
from fedstage.weights import Weights

#: Devices on which clients train side by side: on a CPU they would push each other out of caches.
SIDE_BY_SIDE = ("cuda",)


def local_training(
    recipe: Recipe,
    read: LocalTrainingInputs[Path],
    *,
    round_: int,
    group: int,
    participants: list[int],
    outputs: list[Path],
) -> Seconds:
    """Train the `participants` of round `round_` on their clients' samples; write their updates.

    The update of an absent participant has no tensors. All start from the same model: the group's
    after the previous round, unless they are stale.

    On a GPU up to `execution.clients_per_gpu` of them train side by side, on a CPU each in turn.

    Parameters
    ----------
    outputs : list of Path
        One update per participant, as `train_participant` describes it.

    Returns
    -------
    dict of str to float
        The seconds of each update; clients that train side by side share the time equally.

    Raises
    ------
    FedstageError
        If training diverges and `on_divergence` is stop; the message names client, round and step.
    """
    device, info = begin(recipe, read.info)
    seconds, together = Seconds(), at_a_time(device)

    @cache
    def known() -> tuple[list[Weights], list[float]]:
        """Return the last global models and their losses; read once, when first needed."""
        past = [load_tensors(path)[0] for path in read.history]
        if not read.server_validation:
            return past, []
        judged = (
            load_model(path, model_of(recipe, group), info, device, recipe.numerics)
            for path in read.history
        )
        return past, losses_of(judged, read.server_validation, info, device, recipe.numerics)

    def work(participant: int, output: Path) -> Generator[None, None, None]:
        client, base = client_of(read.participation, round_, participant)
        if client is None:
            place = {"round": round_, "group": group, "participant": participant}
            save_tensors(output, {}, place | {"client": None})
            return
        samples, labels = read_own(read, client, device, info)
        trained = Participant(round_, group, participant, client, samples, labels, base)
        begun = Start(read.start, load_tensors(read.start)[0], read_state(read.state), *known())
        lesson: Lesson | None = None
        server = None
        if read.server_model:
            server = load_model(read.server_model, recipe.model, info, device, recipe.numerics)
            lesson = partial(targets_of, server=server, recipe=recipe, info=info)
        if read.public:
            lesson = partial(
                _digested,
                recipe=recipe, received=read.received_logits, public=read.public, client=client,
                round_=round_, info=info, server=server,
            )  # fmt: skip
        update = yield from train_participant(recipe, trained, begun, info, lesson)
        save_tensors(output, *update)

    def timed(participant: int, output: Path) -> Generator[None, None, None]:
        begun = time.perf_counter()
        for turn, _ in enumerate(work(participant, output)):
            yield
            if device.type in SIDE_BY_SIDE:  # others may have drawn in between
                seed_globals(recipe.seed, "local_training", round_, group, participant, turn)
        seconds[str(output)] = (time.perf_counter() - begun) / together

    works = (timed(*pair) for pair in zip(participants, outputs, strict=True))
    take_turns(works, together, device)
    return seconds


def _digested(
    model: nn.Module, samples: Samples, labels: torch.Tensor, **known: Any
) -> torch.Tensor:
    """Train a client's model on received logits; return the labels of its own samples."""
    digest(model, **known)
    return labels


def at_a_time(device: torch.device) -> int:
    """Return how many clients train side by side, which changes no byte of their updates.

    `workflow/rules/common.smk` sets the variable.
    """
    if device.type not in SIDE_BY_SIDE:
        return 1
    return int(os.environ.get("FEDSTAGE_CLIENTS_PER_GPU") or 1)
