"""AG News as published: ``train.csv`` and ``test.csv`` without a header, class, title, description.

Zhang, Zhao and LeCun, NeurIPS 2015. Classes are numbered from 1 there, from 0 here. A text is an
article's title and description, cut into WordPieces.
"""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from fedstage.data.datasets.images import Dataset, Images
from fedstage.data.datasets.splits import Rows, choose_rows
from fedstage.data.datasets.wordpiece import SPECIAL, build_vocabulary, encode
from fedstage.errors import FedstageError
from fedstage.settings.data import AgNews

CLASSES = ("World", "Sports", "Business", "Sci/Tech")


class _Article(NamedTuple):
    text: str
    label: int


def load(settings: AgNews, folder: Path) -> Dataset:
    """Read the texts below the data folder as tokens int32 [n, length], padded with 0.

    Without a vocabulary file the vocabulary is built from the training texts.

    Raises
    ------
    FedstageError
        If a file is missing or invalid, or there are fewer texts than a size.
    """
    place = folder / settings.folder
    train, test = _read(place / "train.csv"), _read(place / "test.csv")
    rows = choose_rows(settings, len(train), len(test))
    pieces = _pieces(settings, folder, [train[row].text for row in rows.train.tolist()])
    numbers = {piece: number for number, piece in enumerate(pieces)}

    def samples(part: Sequence[_Article], chosen: Rows) -> Images:
        articles = [part[row] for row in chosen.tolist()]
        tokens = np.zeros((len(articles), settings.length), np.int32)
        for place, article in enumerate(articles):
            tokens[place] = encode(article.text, numbers, settings.length)
        labels = torch.tensor([article.label for article in articles], dtype=torch.int64)
        return Images(torch.from_numpy(tokens), labels)

    return Dataset(
        train=samples(train, rows.train),
        test=samples(test, rows.test),
        held_out=samples(train, rows.held_out).images,
        server_validation=samples(train, rows.server_validation),
        class_names=CLASSES,
    )


def _read(path: Path) -> list[_Article]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            lines = list(csv.reader(file, strict=True))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        detail = error.strerror if isinstance(error, OSError) else error
        raise FedstageError(f"{path}: {detail}") from None
    if not lines:
        raise FedstageError(f"{path}: has no rows")
    for row, cells in enumerate(lines):
        where = f"{path}: row {row}"
        if len(cells) != 3:
            raise FedstageError(
                f"{where}: {len(cells)} columns: must be class, title and description"
            )
        if cells[0] not in ("1", "2", "3", "4"):
            raise FedstageError(f"{where}: class = {cells[0]!r}: must be 1..4")
    return [_Article(" ".join(cells[1:]), int(cells[0]) - 1) for cells in lines]


def _pieces(settings: AgNews, folder: Path, texts: Sequence[str]) -> list[str]:
    """Return the vocabulary of a file, one piece a line, or else of the texts."""
    if settings.vocabulary is None:
        return build_vocabulary(texts, settings.vocabulary_size)
    path = folder / settings.vocabulary
    try:
        pieces = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise FedstageError(f"{path}: data.vocabulary: {error}") from None
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
