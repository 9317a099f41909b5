"""AG News on small files as published, and on the published test file where it is."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch

from fedstage.data.datasets import load
from fedstage.data.datasets.published_texts import CLASSES
from fedstage.data.datasets.texts import SPECIAL, build_vocabulary, tokens_of
from fedstage.errors import FedstageError
from fedstage.randomness import numpy_generator
from fedstage.settings.data import AgNews

TRAIN = [
    ("3", "Oil prices rise", "Oil is up, says a trader."),
    ("1", "Talks fail", 'The "talks" have failed.'),
    ("4", "New chip", "A chip, smaller than before"),
    ("2", "Home win", "They won at home"),
    ("3", "Oil again", "prices fall"),
]
TEST = [("2", "Away win", "They won away"), ("4", "Chips", "Smaller chips")]
REAL = Path(os.environ.get("FEDSTAGE_DATA", "nowhere"), "ag_news", "test.csv")


def settings(**changes):
    return AgNews(name="ag_news", **{"length": 12, "vocabulary_size": 200, **changes})


def write(path, rows):
    quoted = ('","'.join(cell.replace('"', '""') for cell in row) for row in rows)
    path.write_text("".join(f'"{row}"\n' for row in quoted), encoding="utf-8")


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "ag_news"
    made.mkdir()
    write(made / "train.csv", TRAIN)
    write(made / "test.csv", TEST)
    (made / "classes.txt").write_text("\n".join(CLASSES) + "\n")
    return made


def numbers(pieces):
    return {piece: number for number, piece in enumerate(pieces)}


def test_a_division_takes_texts_of_both_files(folder):
    order = numpy_generator(1, "dataset", "division").permutation(7)
    labels = np.array([int(row[0]) - 1 for row in [*TRAIN, *TEST]])
    train, _, test = (np.sort(part) for part in np.split(order, [4, 5]))
    assert train.max() >= 5 > test.min(), "of both files"

    data = load(settings(division=(4, 1, 2), split_seed=1), folder.parent)

    assert data.train.labels.tolist() == labels[train].tolist()
    assert data.test.labels.tolist() == labels[test].tolist()
    assert data.held_out.shape == (1, 12)


def test_texts_are_title_and_description_as_tokens(folder):
    texts = [f"{title} {description}" for _, title, description in TRAIN]
    vocabulary = numbers(build_vocabulary(texts, 200))

    data = load(settings(), folder.parent)

    assert data.train.images.dtype == torch.int32
    assert data.train.images.tolist() == tokens_of(texts, vocabulary, 12).tolist()
    assert (
        data.test.images.tolist()[0]
        == tokens_of(["Away win They won away"], vocabulary, 12).tolist()[0]
    )
    assert data.train.labels.tolist() == [2, 0, 3, 1, 2]
    assert data.test.labels.tolist() == [1, 3]
    assert data.class_names == CLASSES


@pytest.mark.parametrize(
    ("classes", "rows", "names", "labels"),
    [
        ("ham\nspam", ["2", "1", "2"], ("ham", "spam"), [1, 0, 1]),
        ("ham\r\n Mörkö \r\nspam\r\n\r\n", ["3", "1", "3"], ("ham", "spam"), [1, 0, 1]),
        (None, ["1", "10", "2"], ("1", "2", "10"), [0, 2, 1]),
        (None, ["4", "1", "3", "2"], ("1", "2", "3", "4"), [3, 0, 2, 1]),
    ],
    ids=["file", "a class without texts", "no file", "as many as published"],
)
def test_classes_of_own_texts_are_those_of_the_data(folder, classes, rows, names, labels):
    for part in ("train", "test"):
        write(folder / f"{part}.csv", [(number, "a", "b") for number in rows])
    (folder / "classes.txt").unlink()
    if classes is not None:
        (folder / "classes.txt").write_bytes(classes.encode())

    data = load(settings(), folder.parent)

    assert data.class_names == names
    assert data.train.labels.tolist() == data.test.labels.tolist() == labels


def test_vocabulary_is_of_the_texts_that_are_trained_on(folder):
    data = load(settings(train_size=2, held_out=2), folder.parent)
    whole = load(settings(), folder.parent)

    assert (len(data.train.labels), len(data.held_out)) == (2, 2)
    assert int(data.train.images.max()) < int(whole.train.images.max())
    unknown = SPECIAL.index("[UNK]")
    assert (data.test.images == unknown).any()
    assert not (data.train.images == unknown).any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda path: path.unlink(), r"train\.csv: No such file"),
        (lambda path: path.write_text(""), r"train\.csv: has no rows"),
        (
            lambda path: write(path, [*TRAIN, ("5", "a", "b")]),
            r"line 6: class = '5': must be one of 1, 2, 3, 4",
        ),
        (
            lambda path: write(path, [("class", "title", "description"), *TRAIN]),
            "line 1: class = 'class': must be",
        ),
        (lambda path: write(path, [("0", "a", "b")]), "line 1: class = '0': must be"),
        (
            lambda path: write(path, [*TRAIN, ("1", "a")]),
            "line 6: must have class, title",
        ),
        (lambda path: path.write_bytes(b'"1","\xff","b"\n'), r"train\.csv: .*codec"),
    ],
    ids=["missing", "empty", "class", "header", "zero", "columns", "encoding"],
)
def test_faults_of_files_are_named_in_one_line(folder, change, message):
    change(folder / "train.csv")

    with pytest.raises(FedstageError, match=message) as caught:
        load(settings(), folder.parent)
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(not REAL.is_file(), reason="FEDSTAGE_DATA has no ag_news/test.csv")
def test_the_published_test_file(folder):
    (folder / "test.csv").write_bytes(REAL.read_bytes())

    data = load(settings(test_size=None), folder.parent)

    assert data.test.images.shape == (7600, 12)
    assert data.test.labels.bincount().tolist() == [1900] * 4
