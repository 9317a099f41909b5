"""Stage `participation`: draw the client of each slot of each round."""

from pathlib import Path

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
    """
    rule = validate_json(Binding, binding, "--binding") if binding else None
    save_table(output, table(clients, participants, seed, first, last, rule), SCHEMA)
