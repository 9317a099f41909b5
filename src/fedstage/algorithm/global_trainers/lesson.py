"""What a round's ensemble teaches: public samples, and what a student is to learn about them."""

from collections.abc import Sequence
from dataclasses import replace

import torch

from fedstage.algorithm.ensemble_trainers import Members, in_order, stack, teacher_logits
from fedstage.algorithm.global_trainers.objective import LiveTargets
from fedstage.algorithm.global_trainers.student import Taught
from fedstage.algorithm.global_trainers.teachers import Teacher
from fedstage.algorithm.global_trainers.transfers import transfer
from fedstage.data.bags import Samples
from fedstage.randomness import torch_generator
from fedstage.settings.lines import Line
from fedstage.settings.numerics import Numerics
from fedstage.training.passes import forward


def lesson(
    line: Line,
    members: Sequence[Members],
    images: Samples,
    round: int,
    labels: torch.Tensor | None = None,
) -> Taught:
    """Return the public samples of a round, and targets on their device.

    All students of the round, on the server and on clients, have the same. Public samples may have
    `labels` [n].
    """
    assert line.ensemble is not None, "checked by Line: what is taught has an ensemble"
    ordered = in_order(members)
    teacher = teacher_logits(line.ensemble, ordered)
    how = transfer(line.distillation)
    targets = how.targets(line.distillation, teacher, stack(ordered).float()).to(images.device)
    return of_round(line, Taught(images, targets, labels), round)


def of_round(line: Line, whole: Taught, round: int) -> Taught:
    """Return a lesson on the samples of a round, of one on all of them."""
    assert line.server is not None, "checked by Line: what is taught has the server's settings"
    count, most = len(whole.images), line.server.samples_a_round
    if most is None or most >= count:
        return whole
    generator = torch_generator(line.seed, "lesson", round)
    drawn = torch.randperm(count, generator=generator)[:most].sort().values
    drawn = drawn.to(whole.images.device)
    return replace(
        whole,
        images=whole.images[drawn],
        targets=None if whole.targets is None else whole.targets[drawn],
        labels=None if whole.labels is None else whole.labels[drawn],
    )


def live_targets(line: Line, teachers: Sequence[Teacher]) -> LiveTargets:
    """Return the function from pixels to the targets of the line's ensemble and `distillation`."""
    assert line.ensemble is not None, "checked by Line: a global trainer has an ensemble"
    ensemble, how = line.ensemble, transfer(line.distillation)
    (kind,) = ensemble.members  # nobody is drawn

    @torch.no_grad()
    def targets_of(pixels: torch.Tensor) -> torch.Tensor:
        members = in_order(logits_of(teachers, kind, pixels, line.numerics))
        logits = teacher_logits(ensemble, members)
        return how.targets(line.distillation, logits, stack(members).float())

    return targets_of


def logits_of(
    teachers: Sequence[Teacher], kind: str, pixels: torch.Tensor, numerics: Numerics
) -> list[Members]:
    """Return the members' logits of a batch, each by itself and in the order of `teachers`."""
    return [
        Members(
            one.round, one.group, forward(one.model, pixels, numerics)[None], (one.samples,), kind
        )
        for one in teachers
    ]
