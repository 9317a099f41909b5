"""AG News as published: ``train.csv`` and ``test.csv`` without a header, class, title, description.

Zhang, Zhao and LeCun, NeurIPS 2015. Classes are numbered from 1 there, from 0 here. A text is an
article's title and description, cut into WordPieces.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch

from fedstage.data.datasets.images import Dataset, Images
from fedstage.data.datasets.splits import Rows, choose_rows
from fedstage.data.datasets.texts import read_cells, tokens_of, vocabulary_of
from fedstage.errors import FedstageError
from fedstage.settings.data import AgNews
from fedstage.storage.raw_files import place_of

CLASSES = ("World", "Sports", "Business", "Sci/Tech")
_COLUMNS = ("class", "title", "description")


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
    train, test = (_read(place_of(settings, folder, part)) for part in ("train", "test"))
    rows, every = choose_rows(settings, len(train), len(test)), [*train, *test]
    vocabulary = vocabulary_of(settings, folder, (every[row].text for row in rows.train.tolist()))

    def samples(chosen: Rows) -> Images:
        articles = [every[row] for row in chosen.tolist()]
        labels = torch.tensor([article.label for article in articles], dtype=torch.int64)
        texts = [article.text for article in articles]
        return Images(tokens_of(texts, vocabulary, settings.length), labels)

    return Dataset(
        train=samples(rows.train),
        test=samples(rows.test),
        held_out=samples(rows.held_out).images,
        server_validation=samples(rows.server_validation),
        class_names=CLASSES,
    )


def _read(path: Path) -> list[_Article]:
    return [_article(path, row, cells) for row, cells in read_cells(path, _COLUMNS)]


def _article(path: Path, row: int, cells: Sequence[str]) -> _Article:
    if cells[0] not in ("1", "2", "3", "4"):
        raise FedstageError(f"{path}: row {row}: class = {cells[0]!r}: must be 1..4")
    return _Article(" ".join(cells[1:]), int(cells[0]) - 1)
