"""Which outputs of clients' models are read: the classes', or all."""

from collections.abc import Mapping
from typing import Any

import torch

from fedstage.settings.aggregators import Aggregator


def of_classes(logits: torch.Tensor, info: Mapping[str, Any]) -> torch.Tensor:
    """Return the outputs [..., C] for the data set's classes, which come first."""
    return logits[..., : int(info["classes"])]


def of_rule(aggregator: Aggregator, logits: torch.Tensor, info: Mapping[str, Any]) -> torch.Tensor:
    """Return the outputs [..., n, outputs] that a rule sees: the classes', or all."""
    return logits if aggregator.sees_all_outputs else of_classes(logits, info)
