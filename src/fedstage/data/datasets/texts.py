"""Texts in CSV files without a header, and as tokens: numbers of WordPieces in a vocabulary."""

import csv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import torch

from fedstage.data.datasets.wordpiece import SPECIAL, Vocabulary, build_vocabulary, encode
from fedstage.errors import FedstageError
from fedstage.settings.data import Texts
from fedstage.storage.raw_files import place_of


def read_cells(
    path: Path, columns: Sequence[str], encoding: str = "utf-8", *, strict: bool = True
) -> Iterator[tuple[int, list[str]]]:
    """Yield the number, from 0, and the cells of each row; `columns` are the names of the cells.

    Unless `strict`, a quotation mark within a cell may stand alone.

    Raises
    ------
    FedstageError
        If the file is missing, empty or not in the encoding, or a row has different columns.
    """
    row = -1
    try:
        with path.open(encoding=encoding, newline="") as file:
            for row, cells in enumerate(csv.reader(file, strict=strict)):
                if len(cells) != len(columns):
                    must = f"{', '.join(columns[:-1])} and {columns[-1]}"
                    raise FedstageError(f"{path}: row {row}: {len(cells)} columns: must be {must}")
                yield row, cells
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        detail = error.strerror if isinstance(error, OSError) else error
        raise FedstageError(f"{path}: {detail}") from None
    if row < 0:
        raise FedstageError(f"{path}: has no rows")


def read_lines(path: Path, where: str) -> list[str]:
    """Return the lines of a UTF-8 file; raise FedstageError, beginning with `where`, on failure."""
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise FedstageError(f"{where}: {error}") from None


def vocabulary_of(settings: Texts, folder: Path, texts: Iterable[str]) -> Vocabulary:
    """Return the vocabulary from a file in the data folder, one piece per line, or from `texts`.

    Raises
    ------
    FedstageError
        If the file is missing, too large, or without the special tokens.
    """
    pieces = _pieces(settings, folder, texts)
    return {piece: number for number, piece in enumerate(pieces)}


def _pieces(settings: Texts, folder: Path, texts: Iterable[str]) -> list[str]:
    if settings.vocabulary is None:
        return build_vocabulary(texts, settings.vocabulary_size)
    path = place_of(settings, folder, "vocabulary")
    pieces = read_lines(path, f"{path}: data.vocabulary")
    missing = [piece for piece in SPECIAL[:4] if piece not in pieces]
    if missing or pieces[0] != SPECIAL[0]:
        fault = f"has no {missing[0]}" if missing else f"begins with {pieces[0]}"
        others = ", ".join(SPECIAL[1:4])
        raise FedstageError(
            f"{path}: data.vocabulary: {fault}: must have [PAD] first, and {others}"
        )
    if len(pieces) > settings.vocabulary_size:
        raise FedstageError(
            f"{path}: data.vocabulary_size = {settings.vocabulary_size}: the file has {len(pieces)}"
        )
    return pieces


def tokens_of(texts: Sequence[str], vocabulary: Vocabulary, length: int) -> torch.Tensor:
    """Return texts as tokens int32 [n, length], cut or padded with 0."""
    tokens = np.zeros((len(texts), length), np.int32)
    for place, text in zip(tokens, texts, strict=True):
        place[:] = encode(text, vocabulary, length)
    return torch.from_numpy(tokens)
