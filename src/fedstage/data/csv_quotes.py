"""Quotes of CSV files that are not closed: Arrow takes all rows after them as one value."""

import csv
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

from fedstage.data.excerpts import excerpt, quoted
from fedstage.errors import FedstageError

_END = "end of the file"
_LONGEST = 2**31 - 1  # characters of a value; by default, the module csv takes 131,072


def refuse_open_quote(path: Path) -> None:
    """Refuse a quote that is open at the end of a CSV file.

    Only a file that has a quote is parsed, by the rules of Arrow: within a value that does not
    begin with a quote, quotes are letters.

    Raises
    ------
    FedstageError
        If a quote is not closed.
    """
    with path.open("rb") as file:
        if not any(b'"' in line for line in file):
            return
    with path.open(encoding="utf-8-sig", newline="") as file, _long_values():
        # A line of its own, unless a quote is open.
        rows = csv.reader(chain(file, [_END]))
        header = next(rows)
        ((number, last),) = deque(enumerate(rows, 2), maxlen=1) or [(1, header)]
    if last != [_END]:
        value = last[-1].removesuffix(_END)
        named = number > 1 and len(last) <= len(header)
        column = excerpt(header[len(last) - 1]) if named else f"column {len(last)}"
        raise FedstageError(
            f"{path}: row {number}: {column} = {quoted(value)}: a quote that is not closed; close "
            "it, or delete it"
        )


@contextmanager
def _long_values() -> Iterator[None]:
    """Let the module csv read values of any length, such as the rest of a file."""
    before = csv.field_size_limit(_LONGEST)
    try:
        yield
    finally:
        csv.field_size_limit(before)
