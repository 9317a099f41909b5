"""The server of FedGKT (He et al. 2020), which learns from features of the clients' samples.

After a round, client i sends, computed by its own model for each of its samples x with label y,

    H = E_i(x)        z_c = C_i(H)        y

in evaluation mode. On the uploads of all participants together, the server's model S minimises

    l_s = KL_T(z_c -> z_s) + alpha CE(z_s, y)        z_s = S(H)

and a client that takes part later receives z_s = S(E_i(x)): see `local_trainers.gkt`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from fedstage.algorithm.global_trainers.student import Taught, teach
from fedstage.algorithm.local_trainers.gkt import put_together, taken_apart, transfer
from fedstage.data.bags import Samples
from fedstage.models.heads import HEAD, body_of, joined
from fedstage.protocol.teaching import server_of
from fedstage.settings.local_training import Gkt
from fedstage.settings.recipes import Recipe
from fedstage.training.passes import Loss, compute_logits
from fedstage.weights import Weights

#: Features [n, width, H, W] of samples, and their targets [n, 1 + classes]: y and z_c.
Upload = tuple[torch.Tensor, torch.Tensor]


def targets_of(
    model: nn.Module,
    samples: Samples,
    labels: torch.Tensor,
    *,
    server: nn.Module,
    recipe: Recipe,
    info: Mapping[str, Any],
) -> torch.Tensor:
    """Return the targets [n, 1 + classes] of a client's training: labels and z_s, in order.

    Parameters
    ----------
    model : nn.Module
        The client's model at the start of the round.
    labels : torch.Tensor
        Labels of the samples, [n], on the device of both models.
    """
    logits = compute_logits(joined(model, server), samples, info, recipe.numerics)
    return put_together(labels, logits.to(labels.device))


def upload(
    model: nn.Module,
    samples: Samples,
    labels: torch.Tensor,
    recipe: Recipe,
    info: Mapping[str, Any],
) -> Upload:
    """Return the upload for a client's samples [n, ...], in their order, on the labels' device."""
    device = labels.device
    features = compute_logits(body_of(model), samples, info, recipe.numerics).to(device)
    logits = compute_logits(model.get_submodule(HEAD), features, info, recipe.numerics).to(device)
    return features, put_together(labels, logits)


def loss_of(settings: Gkt) -> Loss:
    """Return l_s of the server's logits [b, classes] against targets [b, 1 + classes]."""

    def loss(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        labels, received = taken_apart(targets)
        labelled = cross_entropy(logits, labels)
        return transfer(received, logits, settings) + settings.alpha * labelled

    return loss


def train_server(
    server: nn.Module,
    uploads: Sequence[Upload],
    recipe: Recipe,
    info: Mapping[str, Any],
    round_: int,
) -> tuple[Weights, dict[str, Any]]:
    """Train the server's model in place; return its weights, and metadata of its training.

    Raises
    ------
    FedstageError
        If it diverges.
    """
    assert isinstance(recipe.local, Gkt), "clients exchange features"
    features, targets = (torch.cat(parts) for parts in zip(*uploads, strict=True))
    return teach(
        server,
        Taught(features, targets),
        loss_of(recipe.local),
        server_of(recipe),
        recipe.numerics,
        info,
        (recipe.seed, "feature_training", round_),
        f"the server's model, round {round_}",
    )
