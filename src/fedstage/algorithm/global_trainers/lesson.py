"""What a round's ensemble teaches: public samples, and what a student is to learn about them."""

from collections.abc import Sequence

import torch

from fedstage.algorithm.ensemble_trainers import Members, in_order, stack, teacher_logits
from fedstage.algorithm.global_trainers.transfers import transfer
from fedstage.data.bags import Samples
from fedstage.randomness import torch_generator
from fedstage.settings.lines import Line


def lesson(
    line: Line, members: Sequence[Members], images: Samples, round: int
) -> tuple[Samples, torch.Tensor]:
    """Return the public samples [n, ...] of a round, and targets [n, ...] on their device.

    All students of the round, on the server and on clients, have the same.
    """
    assert line.ensemble is not None, "checked by Line: what is taught has an ensemble"
    assert line.server is not None, "checked by Line: and the server's settings"
    ordered = in_order(members)
    teacher = teacher_logits(line.ensemble, ordered)
    how = transfer(line.distillation)
    targets = how.targets(line.distillation, teacher, stack(ordered).float()).to(images.device)
    most = line.server.samples_a_round
    if most is None or most >= len(images):
        return images, targets
    generator = torch_generator(line.seed, "lesson", round)
    drawn = torch.randperm(len(images), generator=generator)[:most].sort().values
    drawn = drawn.to(images.device)
    return images[drawn], targets[drawn]
