"""AG News as published: ``train.csv`` and ``test.csv`` without a header, class, title, description.

Zhang, Zhao and LeCun, NeurIPS 2015. Classes are numbered from 1 in the files, from 0 here, and
named by the lines of ``classes.txt``. A text is an article's title and description, cut into
WordPieces. Texts with other classes may come in the same form.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from fedstage.data.datasets.images import Dataset, Images
from fedstage.data.datasets.splits import choose_rows
from fedstage.data.datasets.texts import read_cells, read_lines, token_reader
from fedstage.errors import FedstageError
from fedstage.settings.data import AgNews
from fedstage.storage.raw_files import place_of

#: The names of the published classes, and the published numbers of texts: train and test.
CLASSES, _PUBLISHED = ("World", "Sports", "Business", "Sci/Tech"), (120_000, 7_600)


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
    numbers, texts = zip(*train, *test, strict=True)
    classes, labels = np.unique(numbers, return_inverse=True)
    if named is None and [*classes] == [1, 2, 3, 4] and (len(train), len(test)) == _PUBLISHED:
        named = list(CLASSES)
    names = tuple(named[number - 1] if named else str(number) for number in classes)
    split = choose_rows(settings, len(train), len(test))
    tokens = token_reader(settings, folder, texts, split.train)
    return split.dataset(lambda own: Images(tokens(own), torch.from_numpy(labels[own])), names)


def _names(path: Path) -> list[str] | None:
    """Return the names of classes 1, 2, ..., None if there is no such file."""
    if not path.is_file():
        return None
    return "\n".join(read_lines(path, str(path))).rstrip().split("\n")


def _read(path: Path, named: Sequence[str] | None) -> list[tuple[int, str]]:
    """Return the class and the text of each article."""
    found = []
    for row, (number, *text) in read_cells(path, ("class", "title", "description")):
        if not number.isdecimal() or (named is not None and not 1 <= int(number) <= len(named)):
            must = "a whole number" if named is None else f"1..{len(named)}, a line of classes.txt"
            raise FedstageError(f"{path}: row {row}: class = {number!r}: must be {must}")
        found.append((int(number), " ".join(text)))
    return found
