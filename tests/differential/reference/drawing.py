"""Draws of a reference's own, in the schemes of the package, from generators of NumPy and torch.

Nothing but the samples of the data set is read.
"""

import numpy as np
import torch
from reference.network import CLASSES, draw_weights
from reference.reading import Samples


class Drawn(Samples):
    """The choices of a seed, drawn as they are asked for.

    Clients of several `groups` are each in one of them, and are drawn in proportion to samples.
    """

    def __init__(
        self, networks, data, seed, *,
        clients, participants, alpha, least, batch, for_aggregator=0.0, groups=1,
    ):  # fmt: skip
        super().__init__(data)
        self.networks, self.clients, self.size, self.batch = (
            networks, clients, participants, batch
        )  # fmt: skip
        self.numpy = np.random.default_rng([seed, 2718])
        self.torch = torch.Generator().manual_seed(seed * 1009 + 77)
        self.own = {}
        for client, samples in enumerate(self.dirichlet(alpha, least)):
            order = self.numpy.permutation(samples)
            parted = len(order) - round(for_aggregator * len(order))
            self.own[client, "train"] = order[:parted].tolist()
            self.own[client, "aggregator"] = order[parted:].tolist()
        self.groups = self.numpy.integers(groups, size=clients).tolist() if groups > 1 else []
        self.waiting = {}

    def dirichlet(self, alpha, least):
        """Divide each class by Dir(alpha) over those who have not got their even share yet.

        Yurochkin et al. 2019, repeated until every client has `least` samples.
        """
        labels = self.labels.numpy()
        while True:
            hands = [[] for _ in range(self.clients)]
            for label in range(CLASSES):
                own = self.numpy.permutation(np.flatnonzero(labels == label))
                shares = self.numpy.dirichlet([alpha] * self.clients)
                shares *= [len(hand) < len(labels) / self.clients for hand in hands]
                ends = np.rint(np.cumsum(shares) / shares.sum() * len(own)).astype(int)
                for hand, piece in zip(hands, np.split(own, ends[:-1]), strict=True):
                    hand.extend(piece.tolist())
            if min(map(len, hands)) >= least:
                return hands

    def network(self, group=0):
        return draw_weights(self.networks[group](), self.torch)

    def participants(self, round_):
        if not self.groups:
            return self.numpy.choice(self.clients, self.size, replace=False).tolist()
        left = {client: len(self.own[client, "train"]) for client in range(self.clients)}
        drawn = []
        for _ in range(self.size):
            shares = [samples / sum(left.values()) for samples in left.values()]
            drawn.append(int(self.numpy.choice(list(left), p=shares)))
            del left[drawn[-1]]
        return drawn

    def group(self, client):
        return self.groups[client]

    def samples(self, client, role="train"):
        own = self.own[client, role]
        return self.images[own], self.labels[own]

    def batches(self, round_, client, samples, epochs):
        """Return the batches of permutations; a single last sample joins the batch before it."""
        parts = []
        for _ in range(epochs):
            own = list(torch.randperm(samples, generator=self.torch).split(self.batch))
            if len(own) > 1 and len(own[-1]) == 1:
                own[-2:] = [torch.cat(own[-2:])]
            parts.extend(own)
        return parts

    def public_batches(self, steps):
        return [self.next_full("public", len(self.public)) for _ in range(steps)]

    def aggregator_batch(self, client, samples):
        return self.next_full(client, samples)

    def next_full(self, whose, samples):
        """Return the next full batch of permutations that go on from call to call."""
        size, waiting = min(self.batch, samples), self.waiting.setdefault(whose, [])
        if not waiting:
            order = torch.randperm(samples, generator=self.torch)
            waiting.extend(order[: samples // size * size].split(size))
        return waiting.pop()
