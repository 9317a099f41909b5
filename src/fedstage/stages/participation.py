"""Stage `participation`: draw which client each slot of a round is."""

from pathlib import Path

from fedstage.data.participation import SCHEMA, table
from fedstage.settings.binding import Binding
from fedstage.settings.validation import validate_json
from fedstage.storage.tensors import save_table


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
        Clients in all, and how many of them take part in a round.
    seed : int
        Seed of the training line.
    first, last : int
        Rounds, numbered from 1.
    binding : str, optional
        Which clients may be which slot, as JSON of `fedstage.settings.binding.Binding`; by default all any.
    output : Path
        Parquet of `fedstage.data.participation.SCHEMA`.
    """
    rule = validate_json(Binding, binding, "--binding") if binding else None
    save_table(output, table(clients, participants, seed, first, last, rule), SCHEMA)
