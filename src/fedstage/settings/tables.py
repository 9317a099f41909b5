"""The columns of tables of samples."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from fedstage.settings.base import Settings

#: How the samples of a table get clients.
CLIENT_COLUMN = "name one in data.client_column"

#: Names of columns.
Columns = Annotated[tuple[str, ...], Field(strict=False)]


class OwnerColumns(Settings):
    """Which columns are the class and the client of a sample."""

    label: str = "label"
    """Column of classes: integers, texts or booleans."""
    client_column: str | None = None
    """Column of the natural partition's clients: integers, texts or booleans."""

    def _faults(self) -> Iterator[str]:
        yield from super()._faults()
        if self.client_column == self.label:
            yield f"client_column = {self.label!r}: is the label"


class TableColumns(OwnerColumns):
    """What the columns of a table are.

    Numbers are standardised by the mean and deviation of the clients' training rows; texts,
    booleans and the columns of `categorical` are one-hot coded with the categories there.
    """

    features: Columns = ()
    """Columns of features, by default all others."""
    drop: Columns = ()
    """Columns that are no features."""
    categorical: Columns = ()
    """Columns of numbers that are categories."""
    missing: Literal["refuse", "mean"] = "refuse"
    """What is missing is refused, or becomes the mean of a column of numbers, and in other columns
    a category of its own.
    """

    def _faults(self) -> Iterator[str]:
        yield from super()._faults()
        if self.features and self.drop:
            yield "features and drop: give one of them"
        for key in ("features", "drop", "categorical"):
            columns = getattr(self, key)
            for column in columns:
                if column in (self.label, self.client_column):
                    yield f"{key}: {column!r} is the label or the clients' column, no feature"
                if columns.count(column) > 1:
                    yield f"{key}: {column!r} is there twice"
        for column in self.categorical:
            if column in self.drop or (self.features and column not in self.features):
                yield f"categorical: {column!r} is not among the features"
