"""Tables of FLamby, which say of each sample where it belongs."""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from fedstage.errors import FedstageError


def read_rows(
    path: Path, columns: Sequence[str], beside: str
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the rows of a table with the numbers of their lines.

    Parameters
    ----------
    columns : sequence of str
        Those that the table must have.
    beside : str
        What the table is to be put beside, for the message where it is not there.

    Raises
    ------
    FedstageError
        If the table or one of the columns is not there.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise FedstageError(
            f"{path}: {error.strerror}; it is a file of FLamby's, to be put beside {beside}"
        ) from None
    reader = csv.DictReader(text.splitlines())
    missing = [name for name in columns if name not in (reader.fieldnames or ())]
    if missing:
        raise FedstageError(f"{path}: has no column {missing[0]!r}")
    yield from enumerate(reader, start=2)
