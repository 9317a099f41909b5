"""Sentiment140 as published, its users divided as in Fed-ET (Cho et al. 2022, Appendix C).

Go, Bhayani and Huang 2009: a CSV file in Latin-1 without a header, of polarity (0 or 4), id, date,
query, user and text. Users with enough tweets are divided into disjoint groups for training, for
testing, for the unlabelled public set and for the server, so that no user is in two of them.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from operator import itemgetter
from pathlib import Path

import numpy as np
import torch

from fedstage.data.datasets.images import Dataset, Images
from fedstage.data.datasets.splits import Split, permutation
from fedstage.data.datasets.texts import read_cells, token_reader
from fedstage.errors import FedstageError
from fedstage.settings.data import Sent140
from fedstage.storage.raw_files import place_of

CLASSES = ("negative", "positive")
_COLUMNS = ("polarity", "id", "date", "query", "user", "text")
_LABELS = {"0": 0, "4": 1}


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
    # Read twice: most tweets are by users with few tweets.
    counts = Counter(user for user, _, _ in _read(path))
    users = sorted(user for user, count in counts.items() if count > settings.min_samples)
    groups = divide_users(settings, len(users), path)
    number_of = {user: number for number, user in enumerate(users)}
    tweets = sorted((one for one in _read(path) if one[0] in number_of), key=itemgetter(0))
    texts = [text for _, _, text in tweets]
    labels = torch.tensor([label for _, label, _ in tweets], dtype=torch.int64)
    owners = np.array([number_of[user] for user, _, _ in tweets])
    rows = Split(*(np.flatnonzero(np.isin(owners, group)) for group in vars(groups).values()))
    tokens = token_reader(settings, folder, texts, rows.train)
    data = rows.dataset(lambda own: Images(tokens(own), labels[own]), CLASSES)
    _, clients = np.unique(owners[rows.train], return_inverse=True)
    return replace(data, train=replace(data.train, clients=torch.from_numpy(clients)))


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
        fault = f"{users} users have more tweets, too few for {shares} and one to train; lower it"
        raise FedstageError(f"{path}: data.min_samples = {settings.min_samples}: {fault}")
    order = permutation(settings.split_seed, "users", users)
    return Split(
        train=np.sort(order[:train]),
        test=np.sort(order[others:]),
        held_out=np.sort(order[public:others]),
        server_validation=np.sort(order[train:public]),
    )


def _share(fraction: float, users: int) -> int:
    return max(1, round(fraction * users)) if fraction else 0


def _read(path: Path) -> Iterator[tuple[str, int, str]]:
    """Yield the user, the label and the text of each tweet."""
    for row, (polarity, *_, user, text) in read_cells(path, _COLUMNS, "latin-1", strict=False):
        if polarity not in _LABELS:
            raise FedstageError(f"{path}: row {row}: polarity = {polarity!r}: must be 0 or 4")
        yield user, _LABELS[polarity], text
