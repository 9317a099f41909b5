"""Sentiment140 on a small file as published."""

from collections import Counter

import pytest
import torch

from fedstage.data.datasets import load
from fedstage.data.datasets.texts import build_vocabulary, tokens_of
from fedstage.data.partitions import divide
from fedstage.errors import FedstageError
from fedstage.randomness import numpy_generator
from fedstage.settings.data import Sent140
from fedstage.settings.partitions import Natural

FILE = "training.1600000.processed.noemoticon.csv"
USERS = [f"user{number:02}" for number in range(10)]


def settings(**changes):
    given = {"length": 12, "vocabulary_size": 300, "min_samples": 2}
    return Sent140(name="sent140", **given | changes)


def tweet(user, number):
    """Return a row whose text names its user, so that a token tells whose it is."""
    polarity = "04"[(USERS.index(user) + number) % 2]
    cells = (polarity, str(number), "Mon Apr 06 2009", "NO_QUERY", user, f"{user} says {number}")
    return '"' + '","'.join(cells) + '"'


def rows():
    """Return user00 to user09 with 3 to 12 tweets, mixed, and one tweet of somebody else."""
    mixed = [(number, user) for user in USERS for number in range(3 + USERS.index(user))]
    found = [tweet(user, number) for number, user in sorted(mixed)]
    return [*found, '"0","9","Mon Apr 06 2009","NO_QUERY","rare","caf\xe9 "closed""']


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "sent140"
    made.mkdir()
    write(made, rows())
    return made


def write(folder, lines):
    (folder / FILE).write_text("\n".join(lines) + "\n", encoding="latin-1")


@pytest.fixture
def vocabulary(folder):
    """A vocabulary in which each user's name is a piece of its own."""
    pieces = build_vocabulary([f"{user} says" for user in USERS], 300)
    (folder.parent / "vocab.txt").write_text("\n".join(pieces))
    return {piece: number for number, piece in enumerate(pieces)}


def users_in(tokens, vocabulary):
    """Return how many tweets of each user there are; the name is what follows [CLS]."""
    names = {vocabulary[user]: user for user in USERS}
    return Counter(names[number] for number in tokens[:, 1].tolist())


def groups(data, vocabulary):
    parts = (data.train.images, data.test.images, data.held_out, data.server_validation.images)
    return [users_in(part, vocabulary) for part in parts]


def test_no_user_is_in_two_groups_and_none_is_lost(folder, vocabulary):
    data = load(settings(vocabulary="vocab.txt", server_validation=0.25), folder.parent)
    found = groups(data, vocabulary)

    # 10 users: 20 % test; of the other 8, 20 % are public and 25 % the server's.
    assert [len(group) for group in found] == [4, 2, 2, 2]
    whole = sum(found, Counter())
    assert whole == {user: 3 + number for number, user in enumerate(USERS)}


def test_the_natural_partition_follows_the_users_that_train(folder, vocabulary):
    data = load(settings(vocabulary="vocab.txt"), folder.parent)
    labels, clients = data.train.labels.numpy(), data.train.clients.numpy()
    generator = numpy_generator(0, "partition")
    names = sorted(users_in(data.train.images, vocabulary))

    assigned = divide(Natural(name="natural"), labels, len(names), generator, clients)

    assert len(names) == 6
    for samples, name in zip(assigned, names, strict=True):
        assert users_in(data.train.images[samples], vocabulary) == {name: 3 + USERS.index(name)}


def test_only_users_with_more_tweets_than_the_minimum_are_there(folder, vocabulary):
    data = load(settings(vocabulary="vocab.txt", min_samples=7), folder.parent)
    assert set(sum(groups(data, vocabulary), Counter())) == set(USERS[5:])


def test_tweets_are_tokens_and_polarities_labels(folder, vocabulary):
    data = load(settings(vocabulary="vocab.txt"), folder.parent)
    first = min(users_in(data.train.images, vocabulary))

    assert data.class_names == ("negative", "positive")
    assert data.train.images.dtype == torch.int32
    assert (
        data.train.images[1].tolist() == tokens_of([f"{first} says 1"], vocabulary, 12).tolist()[0]
    )
    assert data.train.labels[:2].tolist() == [
        USERS.index(first) % 2, (USERS.index(first) + 1) % 2
    ]  # fmt: skip


def test_the_vocabulary_is_of_the_users_that_train(folder, vocabulary):
    named = load(settings(vocabulary="vocab.txt"), folder.parent)
    data = load(settings(), folder.parent)
    owners = users_in(named.train.images, vocabulary)
    texts = [f"{user} says {n}" for user in owners for n in range(3 + USERS.index(user))]
    built = {piece: number for number, piece in enumerate(build_vocabulary(texts, 300))}

    assert (
        data.train.images[0].tolist() == tokens_of([f"{min(owners)} says 0"], built, 12).tolist()[0]
    )
    other = min(users_in(named.test.images, vocabulary))
    assert other not in built
    assert data.test.images[0].tolist() == tokens_of([f"{other} says 0"], built, 12).tolist()[0]


def test_the_file_is_in_latin_1_and_quotes_may_stand_alone(folder):
    write(folder, [*rows(), *[rows()[-1]] * 200])
    (folder.parent / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\ncafe\nclosed\n")
    chosen = settings(vocabulary="vocab.txt", min_samples=2, split_seed=1)
    data = load(chosen, folder.parent)
    parts = (data.train.images, data.test.images, data.held_out)
    assert sum(int((part[:, 1] == 4).sum()) for part in parts) == 201
    assert sum(int((part[:, 2] == 5).sum()) for part in parts) == 201


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: (folder / FILE).unlink(), "noemoticon.csv: No such file"),
        (lambda folder: write(folder, []), "line 1: must have polarity, id"),
        (
            lambda folder: write(folder, [*rows(), '"2","1","","","a","b"']),
            r"line 77: polarity = '2': must be one of 0, 4",
        ),
        (
            lambda folder: write(folder, [*rows(), '"0","1","a","b"']),
            r"line 77: must have polarity, id, date, query, user, text",
        ),
        (
            lambda folder: write(folder, rows()[:3]),
            r"data\.min_samples = 2: 0 users have more tweets, too few for test = 0\.2, held_out",
        ),
    ],
    ids=["missing", "empty line", "polarity", "columns", "users"],
)
def test_faults_of_the_file_are_named_in_one_line(folder, change, message):
    change(folder)

    with pytest.raises(FedstageError, match=message) as caught:
        load(settings(), folder.parent)
    assert "\n" not in str(caught.value)
