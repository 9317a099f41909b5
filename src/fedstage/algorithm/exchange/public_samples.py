"""Which public samples a round uses: all, or `samples_a_round` of them, drawn for each round."""

import torch

from fedstage.protocol.teaching import teaching_of
from fedstage.randomness import torch_generator
from fedstage.settings.recipes import Recipe


def samples_of(recipe: Recipe, count: int, round_: int) -> torch.Tensor | None:
    """Return the indices (int64, in order) of a round's samples among `count`; None for all."""
    most = teaching_of(recipe).server.samples_a_round
    if most is None or most >= count:
        return None
    generator = torch_generator(recipe.seed, "lesson", round_)
    return torch.randperm(count, generator=generator)[:most].sort().values
