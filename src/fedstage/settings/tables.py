"""The columns of tables of samples."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from fedstage.settings.base import Settings

#: Hint on how the samples of a table get clients.
CLIENT_COLUMN = "name one in data.client_column"

#: Names of columns.
Columns = Annotated[tuple[str, ...], Field(strict=False)]


class OwnerColumns(Settings):
    """The columns with the class and the client of each sample."""

    label: str = "label"
    """Column of classes: integers, texts or booleans."""
    client_column: str | None = None
    """Column of clients for the natural partition: integers, texts or booleans; by default none."""


class TableColumns(OwnerColumns):
    """The roles of the columns of a table.

    Numbers are standardised by the mean and deviation of the clients' training rows. Texts,
    booleans and the columns of `categorical` are one-hot coded with the categories of these rows.
    """

    features: Columns = ()
    """Columns of features; by default all others."""
    drop: Columns = ()
    """Columns that are not features."""
    categorical: Columns = ()
    """Columns of numbers that are categories."""
    missing: Literal["refuse", "mean"] = "refuse"
    """Whether missing values are refused, or become the mean in columns of numbers and a category
    of their own in other columns.
    """

    def _faults(self) -> Iterator[str]:
        yield from super()._faults()
        if self.features and self.drop:
            yield "features and drop: give one of them"
        for column in self.features:
            if column in (self.label, self.client_column):
                yield f"features: {column!r}: must not be the label or the clients' column"
