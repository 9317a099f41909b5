"""AG News as published: ``train.csv`` and ``test.csv`` without a header, class, title, description.

Zhang, Zhao and LeCun, NeurIPS 2015. Classes are numbered from 1 in the files, from 0 here, and
named by the lines of ``classes.txt``. A text is an article's title and description, cut into
WordPieces. Texts with other classes may come in the same form.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch

from fedstage.data.datasets.images import Dataset, Images
from fedstage.data.datasets.splits import Rows, choose_rows
from fedstage.data.datasets.texts import read_cells, read_lines, tokens_of, vocabulary_of
from fedstage.errors import FedstageError
from fedstage.settings.data import AgNews
from fedstage.storage.raw_files import place_of

#: The names of the published classes, and the published numbers of texts: train and test.
CLASSES, _PUBLISHED = ("World", "Sports", "Business", "Sci/Tech"), (120_000, 7_600)
_COLUMNS = ("class", "title", "description")


class _Article(NamedTuple):
    text: str
    number: int  # of its class, as in the file


def load(settings: AgNews, folder: Path) -> Dataset:
    """Read the texts below the data folder as tokens int32 [n, length], padded with 0.

    Classes are the class numbers that occur in either file, in ascending order. Their names are the
    lines of ``classes.txt``. Without this file, the published texts get the published names, and
    other texts the class numbers. Without a vocabulary file the vocabulary is built from the
    training texts.

    Raises
    ------
    FedstageError
        If a file is missing or invalid, or there are fewer texts than a size.
    """
    named = _names(place_of(settings, folder, "classes"))
    train, test = (_read(place_of(settings, folder, part), named) for part in ("train", "test"))
    rows, every = choose_rows(settings, len(train), len(test)), [*train, *test]
    classes = sorted({article.number for article in every})
    if named is None and classes == [1, 2, 3, 4] and (len(train), len(test)) == _PUBLISHED:
        named = list(CLASSES)
    labels_of = {number: label for label, number in enumerate(classes)}
    vocabulary = vocabulary_of(settings, folder, (every[row].text for row in rows.train.tolist()))

    def samples(chosen: Rows) -> Images:
        articles = [every[row] for row in chosen.tolist()]
        numbers = [labels_of[article.number] for article in articles]
        labels = torch.tensor(numbers, dtype=torch.int64)
        texts = [article.text for article in articles]
        return Images(tokens_of(texts, vocabulary, settings.length), labels)

    return Dataset(
        train=samples(rows.train),
        test=samples(rows.test),
        held_out=samples(rows.held_out).images,
        server_validation=samples(rows.server_validation),
        class_names=tuple(named[number - 1] if named else str(number) for number in classes),
    )


def _names(path: Path) -> list[str] | None:
    """Return the names of classes 1, 2, ..., None if there is no such file."""
    if not path.is_file():
        return None
    return "\n".join(read_lines(path, str(path))).rstrip().split("\n")


def _read(path: Path, named: Sequence[str] | None) -> list[_Article]:
    return [_article(path, row, cells, named) for row, cells in read_cells(path, _COLUMNS)]


def _article(path: Path, row: int, cells: Sequence[str], named: Sequence[str] | None) -> _Article:
    number = int(cells[0]) if cells[0].isdecimal() else -1
    if number < 0 or (named is not None and not 1 <= number <= len(named)):
        allowed = "a whole number" if named is None else f"1..{len(named)}, a line of classes.txt"
        raise FedstageError(f"{path}: row {row}: class = {cells[0]!r}: must be {allowed}")
    return _Article(" ".join(cells[1:]), number)
