"""Which public samples a round uses: all, or as many as the server's settings say, drawn anew."""

import torch

from fedstage.randomness import torch_generator
from fedstage.settings.lines import Line
from fedstage.settings.teaching import teaching_of


def samples_of(line: Line, count: int, round: int) -> torch.Tensor | None:
    """Return the indices (int64, in order) of a round's samples among `count`; None for all."""
    most = teaching_of(line).server.samples_a_round
    if most is None or most >= count:
        return None
    generator = torch_generator(line.seed, "lesson", round)
    return torch.randperm(count, generator=generator)[:most].sort().values
