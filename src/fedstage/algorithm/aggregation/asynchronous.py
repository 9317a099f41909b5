"""Asynchronous aggregation: updates that started from older models (FedAsync, FedBuff).

Participant n has the share p_n and started from a model d_n rounds older than w*_{t-1}. With the
discount s(d_n), 1 or (1 + d_n)^-a, and the server's rate eta, the parameters move to

    models     w_t = w*_{t-1} + eta sum_n p_n s(d_n) (w_n - w*_{t-1})         FedAsync
    changes    w_t = w*_{t-1} + eta sum_n p_n s(d_n) (w_n - w*_{b_n})         FedBuff

FedAsync (Xie et al. 2019, Algorithm 1) has one participant per round, for which the first formula
is (1 - alpha_t) w_{t-1} + alpha_t w_n with alpha_t = eta s(d_n). FedBuff (Nguyen et al. 2022,
Algorithm 1) has a buffer of M updates, p_n = 1/M and s(d) = 1 / sqrt(1 + d). Shares sum to 1 before
the discount, as published, so that a round of stale updates moves the model less.

The papers have no running statistics. Here they are blended like FedAsync's models, at rate 1, so
that variances stay positive.
"""

from collections.abc import Iterable, Sequence

import torch

from fedstage.algorithm.aggregation.averages import add_scaled, average_weights, changes_by
from fedstage.algorithm.exchange.updates import Update
from fedstage.settings.aggregation import (
    Aggregation,
    ConstantDiscount,
    Discount,
    PolynomialDiscount,
)
from fedstage.settings.base import implementation
from fedstage.weights import Tensors, Weights, shapes_of


def discounts_of(settings: Aggregation, updates: Sequence[Update]) -> list[float] | None:
    """Return s(d_n) of each update; None for the plain average of the models.

    The plain average applies if no update is stale, or if the models of stale updates count in
    full.
    """
    discounts = [discount(settings.discount, update.delay) for update in updates]
    stale = any(update.delay for update in updates)
    plain = settings.stale == "models" and all(factor == 1.0 for factor in discounts)
    return None if plain or not stale else discounts


def changes_since(
    starts: Sequence[Tensors],
    models: Sequence[Tensors],
    shares: Sequence[float],
    parameters: Iterable[str],
) -> Tensors:
    """Return sum_n s_n (w_n - start_n) over the parameters, by name, in float64.

    Each sum is computed when it is needed.
    """
    shapes = shapes_of(models[0])

    def change(name: str) -> torch.Tensor:
        total = torch.zeros(shapes[name].shape, dtype=torch.float64)
        for start, model, share in zip(starts, models, shares, strict=True):
            add_scaled(total, share, model[name], start[name])
        return total

    return changes_by(change, shapes, parameters)


def blend(
    start: Tensors,
    models: Sequence[Tensors],
    shares: Sequence[float],
    discounts: Sequence[float],
    buffers: Iterable[str],
) -> Weights:
    """Return start + sum_n p_n s_n (w_n - start) of the running statistics, the `buffers`."""
    counted = [share * factor for share, factor in zip(shares, discounts, strict=True)]
    return average_weights([start, *models], [max(0.0, 1 - sum(counted)), *counted], buffers)


def discount(settings: Discount, delay: int) -> float:
    """Return s(d) >= 0 of an update that is `delay` rounds stale; s(0) is 1."""
    if isinstance(settings, ConstantDiscount):
        return 1.0
    found: float = implementation(settings).factor(settings, delay)
    return found


def factor(settings: PolynomialDiscount, delay: int) -> float:
    """Return (1 + d)^-a (FedAsync, section 5.2)."""
    return float((1 + delay) ** -settings.exponent)
