"""Tables of texts: tokens, labels and clients by name."""

import csv

import pyarrow as pa
import pyarrow.parquet as pq
import torch

from fedstage.data.datasets.texts import load, tokens_of
from fedstage.data.layouts import count_clients
from fedstage.settings.data import TextData
from fedstage.storage.raw_files import raw_files

ROWS = [("A good, good day", "good", "ann"), ("bad\nluck", "bad", "bob"), ("1234", "bad", "ann"),
        ("day of luck", "good", "bob")]  # fmt: skip
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "good", "day", "luck", "1234"]


def settings(**keys):
    keys = {"text": "said", "label": "mood", "client_column": "who", "length": 6} | keys
    return TextData(name="texts", folder="mine", **keys)


def write(path, rows=ROWS, header=("said", "mood", "who")):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def test_texts_are_tokens_and_names_are_kept(tmp_path):
    write(tmp_path / "mine/train.csv")
    write(tmp_path / "mine/test.csv", [("good luck", "good", "bob"), ("bad day", "bad", "cid")])
    (tmp_path / "words.txt").write_text("\n".join(WORDS))
    data = load(settings(vocabulary="words.txt"), tmp_path)
    numbers = {word: number for number, word in enumerate(WORDS)}
    assert data.train.images.tolist() == tokens_of([text for text, *_ in ROWS], numbers, 6).tolist()
    assert data.train.images[2].tolist() == [2, 8, 3, 0, 0, 0]
    assert data.class_names == ("bad", "good")
    assert data.train.labels.tolist() == [1, 0, 0, 1]
    assert data.client_names == ("ann", "bob")
    assert data.train.clients.tolist() == [0, 1, 0, 1]
    assert data.test.clients.tolist() == [1, -1]
    assert count_clients(settings(), tmp_path) == 2
    files = raw_files(settings(vocabulary="words.txt"), tmp_path)
    assert [path.name for paths in files.values() for path in paths] == [
        "test.csv", "train.csv", "words.txt",
    ]  # fmt: skip


def test_parquet_has_the_same_texts(tmp_path):
    write(tmp_path / "one/mine/all.csv", ROWS * 5)
    columns = dict(zip(("said", "mood", "who"), zip(*(ROWS * 5), strict=True), strict=True))
    (tmp_path / "two/mine").mkdir(parents=True)
    pq.write_table(pa.table(columns), tmp_path / "two/mine/all.parquet")
    one, two = (load(settings(test_fraction=0.2), tmp_path / name) for name in ("one", "two"))
    for ours, theirs in ((one.train, two.train), (one.test, two.test)):
        assert torch.equal(ours.images, theirs.images)
        assert torch.equal(ours.labels, theirs.labels)
        assert torch.equal(ours.clients, theirs.clients)
    assert (len(one.train.labels), len(one.test.labels)) == (16, 4)


def test_the_vocabulary_is_made_of_training_texts_alone(tmp_path):
    write(tmp_path / "mine/train.csv", ROWS)
    write(tmp_path / "mine/test.csv", [("zzz", "good", "ann")])
    data = load(settings(), tmp_path)
    assert data.test.images[0].tolist() == [2, 1, 3, 0, 0, 0]  # unknown
