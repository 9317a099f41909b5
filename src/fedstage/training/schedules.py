"""Learning-rate schedules as factors of the learning rate at each step."""

import math

from fedstage.settings.optimisation import Client, Constant, Cosine, Cyclical, Step


def factor(schedule: Constant | Step | Cosine | Cyclical, step: int, steps: int) -> float:
    """Return the factor of the learning rate at `step` = 0 .. steps - 1 of a training.

    Step: factor^(milestones passed). Cosine: final + (1 - final) (1 + cos(pi step/steps)) / 2.
    Cyclical (Izmailov et al. 2018): 1 - (1 - final) q with q = 1/c, 2/c, ..., 1 over c steps.
    """
    if isinstance(schedule, Step):
        # 0.28 of 25 steps are 7, but the floating-point product is slightly more.
        passed = sum(step >= round(milestone * steps, 6) for milestone in schedule.milestones)
        return schedule.factor**passed
    if isinstance(schedule, Cosine):
        half_wave = (1 + math.cos(math.pi * step / steps)) / 2
        return schedule.final + (1 - schedule.final) * half_wave
    if isinstance(schedule, Cyclical):
        return 1 - (1 - schedule.final) * ((step % schedule.cycle + 1) / schedule.cycle)
    return 1.0


def round_factor(client: Client, round_: int) -> float:
    """Return the factor of a client's learning rate in a round, from 1.

    decay^(t - 1), with `round_cosine` = T times (1 + cos(pi min(t - 1, T)/T)) / 2.
    """
    decayed = client.round_decay ** (round_ - 1)
    if client.round_cosine is None:
        return decayed
    passed = min(round_ - 1, client.round_cosine) / client.round_cosine
    return decayed * (1 + math.cos(math.pi * passed)) / 2
