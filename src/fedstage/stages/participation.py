"""Stage `participation`: draw the client of each slot of each round."""

from pathlib import Path
from typing import Any

import numpy as np

from fedstage.data.client_groups import by_group, draw_groups
from fedstage.data.label_counts import read_counts
from fedstage.data.participation import SCHEMA, table
from fedstage.settings.slots import Binding
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
    """
    rule = validate_json(Binding, binding, "--binding") if binding else None
    samples = None
    if histogram is not None:
        counts = read_counts(histogram)
        samples = np.array([sum(counts.get(client, {}).values()) for client in range(clients)])
    drawn: dict[str, Any] = dict(table(clients, participants, seed, first, last, rule, samples))
    if groups is not None:
        drawn = by_group(drawn, draw_groups(clients, groups, seed), groups)
    save_table(output, drawn, SCHEMA)
