"""Tables of FLamby, with the label and the centre of each sample."""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from fedstage.errors import FedstageError


def read_rows(
    path: Path, columns: Sequence[str], samples: str
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the line number and cells of each row of a table, which is next to the `samples`.

    Raises
    ------
    FedstageError
        If the table or one of the columns is missing.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise FedstageError(
            f"{path}: {error.strerror}; take it from FLamby and put it next to {samples}"
        ) from None
    reader = csv.DictReader(text.splitlines())
    missing = [name for name in columns if name not in (reader.fieldnames or ())]
    if missing:
        raise FedstageError(f"{path}: has no column {missing[0]!r}")
    yield from enumerate(reader, start=2)
