"""Sentiment140 as published, its users divided as in Fed-ET (Cho et al. 2022, Appendix C).

Go, Bhayani and Huang 2009: a CSV file in Latin-1 without a header, of polarity (0 or 4), id, date,
query, user and text. Users with enough tweets are divided into disjoint groups for training, for
testing, for the unlabelled public set and for the server, so that no user is in two of them.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from fedstage.data.datasets.images import Dataset, Images
from fedstage.data.datasets.splits import Rows, Split, permutation
from fedstage.data.datasets.texts import read_cells, tokens_of, vocabulary_of
from fedstage.errors import FedstageError
from fedstage.settings.data import Sent140
from fedstage.storage.raw_files import place_of

CLASSES = ("negative", "positive")
_COLUMNS = ("polarity", "id", "date", "query", "user", "text")
_LABELS = {"0": 0, "4": 1}


class _Tweet(NamedTuple):
    user: str
    label: int
    text: str


def load(settings: Sent140, folder: Path) -> Dataset:
    """Read the tweets below the data folder as tokens int32 [n, length], padded with 0.

    The users of the training set are its clients, in the order of their names, each with the tweets
    in the order of the file. Without a vocabulary file the vocabulary is built from their tweets.

    Raises
    ------
    FedstageError
        If the file is missing or invalid, or has too few users with enough tweets for each group.
    """
    path = place_of(settings, folder, "tweets")
    tweets = _by_user(path, settings.min_samples)
    groups = divide_users(settings, len(tweets), path)
    train = _of_users(tweets, groups.train)
    vocabulary = vocabulary_of(settings, folder, (tweet.text for tweet in train))

    def samples(part: Sequence[_Tweet]) -> Images:
        labels = torch.tensor([tweet.label for tweet in part], dtype=torch.int64)
        texts = [tweet.text for tweet in part]
        return Images(tokens_of(texts, vocabulary, settings.length), labels)

    trained = samples(train)
    owners = [number for number, user in enumerate(groups.train.tolist()) for _ in tweets[user]]
    return Dataset(
        train=Images(trained.images, trained.labels, torch.tensor(owners, dtype=torch.int64)),
        test=samples(_of_users(tweets, groups.test)),
        held_out=samples(_of_users(tweets, groups.held_out)).images,
        server_validation=samples(_of_users(tweets, groups.server_validation)),
        class_names=CLASSES,
    )


def divide_users(settings: Sent140, users: int, path: Path) -> Split:
    """Return the numbers of the users in each group, out of the `users` in the file.

    Testing takes the last users of a permutation, the public set the users before them, and the
    server the next ones, so that the test users do not depend on the other shares. A share above 0
    is at least one user.

    Raises
    ------
    FedstageError
        If there are too few users.
    """
    test = _share(settings.test, users)
    others = users - test
    public = others - _share(settings.held_out, others)
    train = public - _share(settings.server_validation, others)
    if train < 1:
        names = ("test", "held_out", "server_validation")
        shares = ", ".join(f"{name} = {getattr(settings, name):g}" for name in names)
        raise FedstageError(
            f"{path}: data.min_samples = {settings.min_samples}: {users} users have more tweets, "
            f"too few for {shares} and one to train; lower it"
        )
    order = permutation(settings.split_seed, "users", users)
    return Split(
        train=np.sort(order[:train]),
        test=np.sort(order[others:]),
        held_out=np.sort(order[public:others]),
        server_validation=np.sort(order[train:public]),
    )


def _share(fraction: float, users: int) -> int:
    return max(1, round(fraction * users)) if fraction else 0


def _by_user(path: Path, min_samples: int) -> list[list[_Tweet]]:
    """Return the tweets of each user who has more than `min_samples`, users by name.

    The file is read twice: most of its tweets are by users with few tweets.
    """
    counts = Counter(tweet.user for tweet in _read(path))
    kept = sorted(user for user, count in counts.items() if count > min_samples)
    tweets: dict[str, list[_Tweet]] = {user: [] for user in kept}
    for tweet in _read(path):
        if tweet.user in tweets:
            tweets[tweet.user].append(tweet)
    return list(tweets.values())


def _read(path: Path) -> Iterator[_Tweet]:
    for row, cells in read_cells(path, _COLUMNS, "latin-1", strict=False):
        polarity, *_, user, text = cells
        if polarity not in _LABELS:
            raise FedstageError(f"{path}: row {row}: polarity = {polarity!r}: must be 0 or 4")
        yield _Tweet(user, _LABELS[polarity], text)


def _of_users(tweets: Sequence[Sequence[_Tweet]], users: Rows) -> list[_Tweet]:
    return [tweet for user in users.tolist() for tweet in tweets[user]]
