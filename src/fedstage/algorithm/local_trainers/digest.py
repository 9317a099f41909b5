"""Clients that learn by one another's logits (FedMD, Li and Wang 2019; DS-FL, Itahara et al. 2023).

Each client keeps a model of its own, of any architecture. In a round it

    1. digests: learns on public samples what the last round's participants said, as students do;
    2. revisits: trains on its own samples;
    3. says its logits on the public samples, from which the ensemble of this round is made.

In its first participation it starts from its architecture's initial model, and in round 1 there is
nothing to digest. FedMD: the mean of logits, and their absolute difference (`distillation` = l1).
DS-FL: the mean of probabilities, sharpened (`entropy_reduction`); its order is 2, 3, 1, which is
the same but for clients that wait with 1 for their next participation. FedMD's clients first train
on labelled public data; here public data have no labels.
"""

from collections.abc import Mapping
from typing import Any

from torch import nn

from fedstage.algorithm.ensemble_trainers import read_members
from fedstage.algorithm.exchange.updates import part
from fedstage.algorithm.global_trainers.lesson import lesson
from fedstage.algorithm.global_trainers.student import teach
from fedstage.algorithm.global_trainers.transfers import transfer
from fedstage.algorithm.local_trainers import Said
from fedstage.algorithm.local_trainers.fedavg import (
    gradient_term,
    objective,
    payload,
    scales,
    sent_down,
)
from fedstage.algorithm.local_trainers.moon import next_state
from fedstage.data.samples import read_public
from fedstage.settings.lines import Line
from fedstage.weights import Weights

__all__ = [
    "gradient_term",
    "next_state",
    "objective",
    "payload",
    "prepare",
    "scales",
    "sent_down",
]


def prepare(
    line: Line,
    model: nn.Module,
    state: Weights,
    client: int,
    round: int,
    said: Said | None,
    info: Mapping[str, Any],
) -> None:
    """Let the model be the client's own, and digest what the last round's participants said."""
    own = part(state, f"client/{client}/")
    if own:
        model.load_state_dict(own)
    if said is None:
        return
    assert line.server is not None, "checked by Line: who digests has the server's settings"
    images = read_public(said.public, dict(info), next(model.parameters()).device)
    samples, targets = lesson(line, read_members(said.logits), images, round - 1)
    teach(
        model,
        samples,
        targets,
        transfer(line.distillation).loss(line.distillation, line.server),
        line.server,
        line.numerics,
        info,
        (line.seed, "digest", round, client),
        f"client {client}, round {round}, digesting",
    )
