"""AG News and Sentiment140 as published, cut into WordPieces.

AG News (Zhang, Zhao and LeCun, NeurIPS 2015) is ``train.csv`` and ``test.csv`` without a header, of
class, title and description. Classes are numbered from 1 in the files, from 0 here, and named by
the lines of ``classes.txt``. Texts with other classes may come in the same form.

Sentiment140 (Go, Bhayani and Huang 2009) is a CSV file in Latin-1 without a header. Its users are
divided as in Fed-ET (Cho et al. 2022, Appendix C): those with enough tweets are in disjoint groups
for training, for testing, for the unlabelled public set and for the server.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from fedstage.data.datasets.images import Dataset, Images
from fedstage.data.datasets.published import read_columns
from fedstage.data.datasets.splits import Split, choose_rows, permutation
from fedstage.data.datasets.texts import read_lines, token_reader
from fedstage.errors import FedstageError
from fedstage.settings.data import AgNews, Sent140
from fedstage.storage.raw_files import place_of

#: The names of the published classes, and the published numbers of texts: train and test.
CLASSES, _PUBLISHED = ("World", "Sports", "Business", "Sci/Tech"), (120_000, 7_600)
POLARITIES = {"0": "negative", "4": "positive"}
_MOST_CLASSES = 100_000


def load(settings: AgNews | Sent140, folder: Path) -> Dataset:
    """Read the texts below the data folder as tokens int32 [n, length], padded with 0.

    Without a vocabulary file the vocabulary is built from the training texts.

    Raises
    ------
    FedstageError
        If a file is missing or invalid, or there are fewer texts than a size, or too few users with
        enough tweets for each group.
    """
    if isinstance(settings, AgNews):
        return _ag_news(settings, folder)
    return _sent140(settings, folder)


def _ag_news(settings: AgNews, folder: Path) -> Dataset:
    """Classes are the class numbers that occur in either file, in ascending order.

    Their names are the lines of ``classes.txt``. Without this file, the published texts get the
    published names, and other texts the class numbers.
    """
    path, named = place_of(settings, folder, "classes"), None
    if path.is_file():
        named = "\n".join(read_lines(path, str(path))).rstrip().split("\n")
        if not all(map(str.strip, named)) or len({*named}) < len(named):
            raise FedstageError(f"{path}: must have another name in each line")
    known = range(_MOST_CLASSES) if named is None else range(1, len(named) + 1)
    allowed = {"class": [*map(str, known)], "title": (), "description": ()}
    train, test = (
        read_columns(place_of(settings, folder, part), allowed, header=False)
        for part in ("train", "test")
    )
    every = pd.concat([train, test])
    numbers, labels = np.unique(every["class"].astype("int64"), return_inverse=True)
    if named is None and [*numbers] == [1, 2, 3, 4] and (len(train), len(test)) == _PUBLISHED:
        named = list(CLASSES)
    names = tuple(named[number - 1] if named else str(number) for number in numbers)
    split = choose_rows(settings, len(train), len(test))
    texts = (every["title"] + " " + every["description"]).tolist()
    tokens = token_reader(settings, folder, texts, split.train)
    return split.dataset(lambda own: Images(tokens(own), torch.from_numpy(labels[own])), names)


def _sent140(settings: Sent140, folder: Path) -> Dataset:
    """Clients are the users of the training set, in the order of their names.

    Each has the tweets in the order of the file.
    """
    path = place_of(settings, folder, "tweets")
    allowed = {"polarity": [*POLARITIES], "id": (), "date": (), "query": (), "user": (), "text": ()}
    table = read_columns(path, allowed, header=False, encoding="latin-1")
    frequent = table.groupby("user")["user"].transform("size") > settings.min_samples
    tweets = table[frequent].sort_values("user", kind="stable")
    owners, users = pd.factorize(tweets["user"])
    labels = torch.from_numpy((tweets["polarity"] == "4").to_numpy(np.int64))
    groups = divide_users(settings, len(users), path)
    rows = Split(*(np.flatnonzero(np.isin(owners, group)) for group in vars(groups).values()))
    tokens = token_reader(settings, folder, tweets["text"].tolist(), rows.train)
    names = tuple(POLARITIES.values())
    data = rows.dataset(lambda own: Images(tokens(own), labels[own]), names)
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
