"""How training samples are dealt out to clients."""

from typing import ClassVar, Literal

from fedstage.settings.base import ByName, Choice, Fraction, Positive, Rate, Seed, Settings


class Scheme(Choice):
    """A scheme that deals out samples."""

    room: ClassVar[str] = "data.partitions"


class Iid(Scheme):
    """Samples shuffled and dealt out evenly."""

    name: Literal["iid"]


class Dirichlet(Scheme):
    """Each class divided over the clients by proportions drawn from Dir(alpha).

    A client that already has its even share gets no more (the mask of Yurochkin et al.). The draw
    is repeated, at most `max_draws` times, until every client has `min_samples`.
    """

    name: Literal["dirichlet"]
    alpha: Rate
    min_samples: Positive = 10
    max_draws: Positive = 1000
    mask: bool = True


class DirichletEqual(Scheme):
    """FedDF's variant: Dirichlet draws in blocks of 10 clients, re-cut to equal sizes."""

    name: Literal["dirichlet_equal"]
    alpha: Rate
    max_draws: Positive = 1000


class DirichletByClient(Scheme):
    """Hsu et al.'s scheme: each client's classes drawn from its own Dir(alpha); equal sizes."""

    name: Literal["dirichlet_by_client"]
    alpha: Rate


class Natural(Scheme):
    """The client column of the data set."""

    name: Literal["natural"]


class Shards(Scheme):
    """Sorted by class and cut into shards; every client gets `classes_per_client` of them."""

    name: Literal["shards"]
    classes_per_client: Positive = 2


Partition = ByName[Iid | Dirichlet | DirichletByClient | DirichletEqual | Shards | Natural]


class Core(Settings):
    """Labelled training samples that the server has of its own, the core of Lee et al. (2020).

    They are a `share` of the partition, one more than there are clients, or ``all`` training
    samples, the clients' included (a control experiment). ``all`` classes must occur among them, or
    only ``some``.
    """

    samples: Literal["share", "all"] = "share"
    classes: Literal["all", "some"] = "all"


class PartitionSettings(Settings):
    """The part of a training recipe that decides which samples each client has."""

    clients: Positive
    partition: Partition
    validation: Fraction
    aggregator_fraction: Fraction = 0.0
    core: Core | None = None
    seed: Seed
