"""Checks of the weights of an ensemble's members, including a plugin's."""

import torch

from fedstage.errors import FedstageError
from fedstage.settings.ensembles import EnsembleTrainer

_TOLERANCE = 1e-5  # of a sum, which may be of numbers in float32


def checked(settings: EnsembleTrainer, shares: object, logits: torch.Tensor) -> torch.Tensor:
    """Return checked weights a_j [members] or a_j(x) [members, n] in float64.

    Parameters
    ----------
    shares : object
        What the function `shares` of an ensemble has returned: a tensor of any floating type.
    logits : torch.Tensor
        Logits of all members, [members, n, classes].

    Raises
    ------
    FedstageError
        If the shape is wrong, a number is not a finite float, the sum over members is not 1, or a
        number is negative where probabilities are averaged.
    """
    if not isinstance(shares, torch.Tensor):
        returned = type(shares).__name__
        raise FedstageError(f"ensemble = {settings.name}: shares returns {returned}: no tensor")
    if fault := _fault(shares, logits.shape[:2]):
        raise FedstageError(f"ensemble = {settings.name}: shares {fault}")
    if settings.average == "probabilities" and (shares < 0).any():
        raise FedstageError(
            f"ensemble = {settings.name}: shares has {shares.min():g}: must not be negative where "
            "average = probabilities"
        )
    return shares.to(logits.device, torch.float64)


def _fault(shares: torch.Tensor, shape: torch.Size) -> str:
    """Return what is wrong with shares of members and samples, or an empty string."""
    if shares.shape not in (shape, shape[:1]):
        of = f"{shape[0]} members, or [{shape[0]}, {shape[1]}] with {shape[1]} samples"
        return f"has the shape {list(shares.shape)}: must be [{shape[0]}], of {of}"
    if not shares.is_floating_point():
        return f"has the type {str(shares.dtype).removeprefix('torch.')}: must be float64"
    if not shares.isfinite().all():
        return "has numbers that are not finite"
    sums = shares.double().sum(0).flatten()
    if not torch.allclose(sums, torch.ones_like(sums), rtol=0, atol=_TOLERANCE):
        worst = sums[(sums - 1).abs().argmax()]
        return f"has a sum over members of {worst:g}: must be 1"
    return ""
