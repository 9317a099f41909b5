"""Measures of runs, ``*.runs.parquet``, that are kept outside of the folder of results."""

import shutil
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

from fedstage.results.claims.library import MEASURES
from fedstage.settings.experiments import Result
from fedstage.storage.tables import load_table


def load_measures(paths: Iterable[Path]) -> list[pa.Table]:
    """Return tables of measures, with the ones of the same columns, of several machines, as one.

    Raises
    ------
    FedstageError
        If a file is missing or damaged.
    """
    kinds: dict[tuple[str, ...], list[pa.Table]] = {}
    for table in map(_load_copy, paths):
        kinds.setdefault(tuple(table.column_names), []).append(table.replace_schema_metadata())
    return [pa.concat_tables(same) for same in kinds.values()]


def absent_measures(
    metrics: Collection[str | None], tables: Sequence[pa.Table]
) -> dict[Result, set[str]]:
    """Return the metrics of each kind of measures that no table has, of the ones given."""
    there = {name for table in tables for name in table.column_names}
    absent = {kind: set(known).intersection(metrics) - there for kind, known in MEASURES.items()}
    return {kind: found for kind, found in absent.items() if found}


def _load_copy(path: Path) -> pa.Table:
    """Read a copy, because a file in another folder named `results` is refused as misplaced."""
    with TemporaryDirectory() as folder:
        return load_table(shutil.copy(path, folder) if path.is_file() else path)
