"""Stage `participation`: draw the client of each slot of each round."""

from pathlib import Path
from typing import Any

import numpy as np

from fedstage.data.client_groups import by_group, draw_groups
from fedstage.data.label_counts import read_counts
from fedstage.data.participation import SCHEMA, table
from fedstage.plan.staleness import base_of
from fedstage.settings.slots import Binding
from fedstage.settings.staleness import Delays
from fedstage.settings.validation import validate_json
from fedstage.storage.tables import save_table


def participation(
    *,
    clients: int,
    participants: int,
    seed: int,
    first: int,
    last: int,
    binding: str | None = None,
    groups: int | None = None,
    histogram: Path | None = None,
    order: str | None = None,
    delays: str | None = None,
    output: Path,
) -> None:
    """Write the participants of the rounds `first` to `last`, both included.

    Parameters
    ----------
    clients, participants : int
        All clients, and those that take part in a round.
    first, last : int
        Rounds, numbered from 1.
    binding : str, optional
        `fedstage.settings.slots.Binding` as JSON: the clients that each slot may have, by default
        all.
    groups : int, optional
        The groups of which each client is drawn one before training.
    histogram : Path, optional
        The label counts of the clients, in proportion to whose training samples they are drawn; by
        default all alike.
    order : str, optional
        ``in_turn`` if they come in the order of their numbers instead.
    delays : str, optional
        `fedstage.settings.staleness.Delays` as JSON: from which round's model each participant
        starts, by default that of the round before, and whether it stays away otherwise.
    """
    rule = validate_json(Binding, binding, "--binding") if binding else None
    samples = None
    if histogram is not None:
        counts = read_counts(histogram)
        samples = np.array([sum(counts.get(client, {}).values()) for client in range(clients)])
    rows = table(clients, participants, seed, first, last, rule, samples, order == "in_turn")
    drawn: dict[str, Any] = {name: column.tolist() for name, column in rows.items()}
    if groups is not None:
        drawn = by_group(rows, draw_groups(clients, groups, seed), groups)
    how = validate_json(Delays, delays, "--delays") if delays else Delays()
    drawn["base_round"] = [
        base_of(how.staleness, seed, round, slot % participants)
        for round, slot in zip(drawn["round"], drawn["slot"], strict=True)
    ]
    if how.withdraw_stale:
        places = zip(drawn["client"], drawn["round"], drawn["base_round"], strict=True)
        drawn["client"] = [client if base == t - 1 else None for client, t, base in places]
    save_table(output, drawn, SCHEMA)
