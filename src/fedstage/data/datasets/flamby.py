"""Tables of FLamby, with the label and the centre of each sample."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from fedstage.errors import FedstageError


def read_columns(path: Path, allowed: Mapping[str, Sequence[str]], samples: str) -> pd.DataFrame:
    """Return columns of a table, which is next to the `samples`, as texts.

    Raises
    ------
    FedstageError
        If the table or a column is missing, or a value is not among the allowed ones, if any.
    """
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
    except (OSError, ValueError) as error:
        detail = error.strerror if isinstance(error, OSError) else error
        hint = f"take it from FLamby and put it next to {samples}"
        raise FedstageError(f"{path}: {detail}; {hint}") from None
    for name, values in allowed.items():
        if name not in table:
            raise FedstageError(f"{path}: has no column {name!r}")
        wrong = ~table[name].isin(values) & bool(values)
        if wrong.any():
            line, value = wrong.argmax() + 2, table[name][wrong.argmax()]
            must = f"must be one of {', '.join(values)}"
            raise FedstageError(f"{path}: line {line}: {name} = {value!r}: {must}")
    return table
