"""AG News as published: ``train.csv`` and ``test.csv`` without a header, class, title, description.

Zhang, Zhao and LeCun, NeurIPS 2015. Classes are numbered from 1 there, from 0 here. A text is its
title and its description, cut into WordPieces.
"""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from fedstage.data.datasets.images import Dataset, Images
from fedstage.data.datasets.splits import Rows, choose_rows
from fedstage.data.datasets.wordpiece import SPECIAL, Vocabulary, build_vocabulary, encode
from fedstage.errors import FedstageError
from fedstage.settings.data import AgNews

CLASSES = ("World", "Sports", "Business", "Sci/Tech")


@dataclass(frozen=True)
class _Texts:
    texts: list[str]
    labels: list[int]


def load_ag_news(settings: AgNews, folder: Path) -> Dataset:
    """Read the texts below the data folder as tokens int32 [n, length], padded with 0.

    A vocabulary that is not given is built of the texts that are trained on.

    Raises
    ------
    FedstageError
        If a file is missing, or not what it must be, or a size asks for more than there are.
    """
    place = folder / settings.folder
    train, test = _read(place / "train.csv"), _read(place / "test.csv")
    rows = choose_rows(settings, len(train.labels), len(test.labels))
    pieces = _pieces(settings, folder, [train.texts[row] for row in rows.train.tolist()])
    numbers = {piece: number for number, piece in enumerate(pieces)}

    def samples(part: _Texts, chosen: Rows) -> Images:
        return _tokens(part, chosen, numbers, settings.length)

    return Dataset(
        train=samples(train, rows.train),
        test=samples(test, rows.test),
        held_out=samples(train, rows.held_out).images,
        server_validation=samples(train, rows.server_validation),
        class_names=CLASSES,
    )


def _read(path: Path) -> _Texts:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            lines = list(csv.reader(file, strict=True))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        detail = error.strerror if isinstance(error, OSError) else error
        raise FedstageError(f"{path}: {detail}") from None
    if not lines:
        raise FedstageError(f"{path}: has no rows")
    labels = [_label(path, row, cells) for row, cells in enumerate(lines)]
    return _Texts([" ".join(cells[1:]) for cells in lines], labels)


def _label(path: Path, row: int, cells: Sequence[str]) -> int:
    if len(cells) != 3:
        raise FedstageError(
            f"{path}: row {row}: {len(cells)} columns: must be class, title and description"
        )
    if cells[0] not in ("1", "2", "3", "4"):
        raise FedstageError(f"{path}: row {row}: class = {cells[0]!r}: must be 1..4")
    return int(cells[0]) - 1


def _pieces(settings: AgNews, folder: Path, texts: Sequence[str]) -> list[str]:
    """Return the vocabulary: that of a file, a piece a line, or of the texts."""
    if settings.vocabulary is None:
        return build_vocabulary(texts, settings.vocabulary_size)
    path = folder / settings.vocabulary
    try:
        pieces = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise FedstageError(f"{path}: data.vocabulary: {error}") from None
    missing = [piece for piece in SPECIAL[:4] if piece not in pieces]
    if missing or pieces[0] != SPECIAL[0]:
        what = f"has no {missing[0]}" if missing else f"begins with {pieces[0]}"
        raise FedstageError(
            f"{path}: data.vocabulary: {what}: must have [PAD] first, and {', '.join(SPECIAL[1:4])}"
        )
    if len(pieces) > settings.vocabulary_size:
        raise FedstageError(
            f"{path}: data.vocabulary_size = {settings.vocabulary_size}: the file has {len(pieces)}"
        )
    return pieces


def _tokens(part: _Texts, rows: Rows, numbers: Vocabulary, length: int) -> Images:
    chosen = rows.tolist()
    tokens = np.zeros((len(chosen), length), np.int32)
    for place, row in enumerate(chosen):
        tokens[place] = encode(part.texts[row], numbers, length)
    labels = torch.tensor([part.labels[row] for row in chosen], dtype=torch.int64)
    return Images(torch.from_numpy(tokens), labels)
