"""How training samples are dealt out to clients."""

from typing import ClassVar, Literal

from fedstage.settings.base import (
    ByName,
    Choice,
    ClientCount,
    Fraction,
    Functions,
    Positive,
    Rate,
    Seed,
    Settings,
)


class Scheme(Choice):
    """A scheme that deals out samples."""

    room: ClassVar[str] = "data.partitions"
    functions: ClassVar[Functions] = {
        "assign": ("settings", "labels", "clients", "generator", "natural")
    }


class Iid(Scheme):
    """Samples shuffled and dealt out evenly."""

    name: Literal["iid"]


class Dirichlet(Scheme):
    """Each class divided over the clients by proportions drawn from Dir(alpha)."""

    name: Literal["dirichlet"]
    alpha: Rate
    """Concentration: small for uneven proportions."""
    min_samples: Positive = 10
    """The draw is repeated until every client has so many samples."""
    max_draws: Positive = 1000
    """How often at most."""
    mask: bool = True
    """A client that already has its even share gets no more (the mask of Yurochkin et al.)."""


class DirichletEqual(Scheme):
    """FedDF's variant: Dirichlet draws in blocks of 10 clients, re-cut to equal sizes."""

    name: Literal["dirichlet_equal"]
    alpha: Rate
    """Concentration: small for uneven proportions."""
    max_draws: Positive = 1000
    """How often a draw is repeated at most."""


class DirichletByClient(Scheme):
    """Hsu et al.'s scheme: each client's classes drawn from its own Dir(alpha); equal sizes."""

    name: Literal["dirichlet_by_client"]
    alpha: Rate
    """Concentration: small for uneven proportions."""


class Natural(Scheme):
    """The client column of the data set."""

    name: Literal["natural"]


class Shards(Scheme):
    """Sorted by class and cut into shards, of which every client gets the same number."""

    name: Literal["shards"]
    classes_per_client: Positive = 2
    """Shards of a client."""


Partition = ByName[Iid | Dirichlet | DirichletByClient | DirichletEqual | Shards | Natural]


class Core(Settings):
    """Labelled training samples that the server has of its own, the core of Lee et al. (2020)."""

    samples: Literal["share", "all"] = "share"
    """A share of the partition, one more than there are clients, or all training samples, the
    clients' included (a control experiment).
    """
    classes: Literal["all", "some"] = "all"
    """All classes must occur among them, or only some."""


class PartitionSettings(Settings):
    """The part of a training recipe that decides which samples each client has."""

    clients: ClientCount
    partition: Partition
    validation: Fraction
    aggregator_fraction: Fraction = 0.0
    core: Core | None = None
    seed: Seed
