"""Stage `participation`: draw the client of each participant of each round."""

from pathlib import Path
from typing import Any

import numpy as np

from fedstage.data.label_counts import read_counts
from fedstage.data.participation import SCHEMA, by_group, draw_groups, draw_independently, table
from fedstage.plan.inputs import ParticipationInputs
from fedstage.protocol.rounds import base_of
from fedstage.settings.groups import Delays, PlanSettings
from fedstage.storage.tables import save_table


def participation(
    recipe: PlanSettings, read: ParticipationInputs[Path], *, first: int, last: int, output: Path
) -> None:
    """Write the participants of the rounds `first` to `last`, both included.

    Parameters
    ----------
    first, last : int
        Rounds, numbered from 1.
    """
    plan, samples = recipe, None
    if read.histogram is not None:
        counts = read_counts(read.histogram)
        samples = np.array([sum(counts.get(client, {}).values()) for client in range(plan.clients)])
    order = plan.participation == "in_turn"
    independent = plan.participation == "poisson"
    participants = plan.clients if independent else plan.participants
    key = (plan.clients, participants, plan.seed, first, last)
    rows = table(*key, samples, order)
    drawn: dict[str, Any] = {name: column.tolist() for name, column in rows.items()}
    if independent:
        drawn["client"] = [
            client
            for round_ in range(first, last + 1)
            for client in draw_independently(plan.clients, plan.participants, plan.seed, round_)
        ]
    if plan.groups is not None:
        drawn = by_group(rows, draw_groups(plan.clients, plan.groups, plan.seed), plan.groups)
    how = plan.delays or Delays()
    drawn["base_round"] = [
        base_of(how.staleness, plan.seed, round_, participant % plan.participants)
        for round_, participant in zip(drawn["round"], drawn["participant"], strict=True)
    ]
    if how.withdraw_stale:
        places = zip(drawn["client"], drawn["round"], drawn["base_round"], strict=True)
        drawn["client"] = [client if base == t - 1 else None for client, t, base in places]
    save_table(output, drawn, SCHEMA)
