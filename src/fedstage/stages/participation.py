"""Stage `participation`: draw which client each slot of a round is."""

from pathlib import Path

from fedstage.artefacts import save_table
from fedstage.participation import SCHEMA, table


def participation(
    *, clients: int, participants: int, seed: int, first: int, last: int, output: Path
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
    output : Path
        Parquet of `fedstage.participation.SCHEMA`.
    """
    save_table(output, table(clients, participants, seed, first, last), SCHEMA)
