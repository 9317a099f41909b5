"""Weights of a model, the one type that all rooms exchange."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # stages that only read tables do not wait for torch
    import torch

#: Tensors by name: a model's parameters and buffers, or anything else that is stored like them.
Weights = dict[str, "torch.Tensor"]
