"""How training samples are distributed to clients."""

from collections.abc import Mapping
from typing import ClassVar, Literal

from fedstage.settings.base import (
    ByName,
    ClientCount,
    Fraction,
    Functions,
    Positive,
    Rate,
    Seed,
    Settings,
)
from fedstage.settings.data_sets import OfFiles


class Scheme(OfFiles):
    """A scheme that distributes samples to clients."""

    room: ClassVar[str] = "data.partitions"
    functions: ClassVar[Functions] = {
        "assign": ("settings", "labels", "clients", "generator", "natural")
    }
    in_folder: ClassVar[bool] = False


class Iid(Scheme):
    """Samples are shuffled and distributed evenly."""

    module: ClassVar[str] = "schemes"
    name: Literal["iid"]


class Dirichlet(Scheme):
    """Each class is divided among the clients in proportions drawn from Dir(alpha)."""

    name: Literal["dirichlet"]
    alpha: Rate
    """Concentration parameter; small values give uneven proportions."""
    min_samples: Positive = 10
    """Minimum number of samples per client; the draw is repeated until every client has them."""
    max_draws: Positive = 1000
    """Maximum number of draws."""
    mask: bool = True
    """Whether a client that already has its even share gets no more (the mask of Yurochkin et al.).
    """


class DirichletEqual(Scheme):
    """FedDF's variant: Dirichlet draws in blocks of 10 clients, cut again to equal sizes."""

    module: ClassVar[str] = "dirichlet"
    name: Literal["dirichlet_equal"]
    alpha: Rate
    """Concentration parameter; small values give uneven proportions."""
    max_draws: Positive = 1000
    """Maximum number of draws."""


class DirichletByClient(Scheme):
    """Hsu et al.'s scheme: each client's classes are drawn from its own Dir(alpha); equal sizes."""

    module: ClassVar[str] = "dirichlet"
    name: Literal["dirichlet_by_client"]
    alpha: Rate
    """Concentration parameter; small values give uneven proportions."""


class Natural(Scheme):
    """The data set's own clients, for example from a column of clients."""

    module: ClassVar[str] = "schemes"
    name: Literal["natural"]


class Shards(Scheme):
    """Samples are sorted by class and cut into shards; every client gets equally many shards."""

    module: ClassVar[str] = "schemes"
    name: Literal["shards"]
    classes_per_client: Positive = 2
    """Number of shards per client."""


class PartitionTable(Scheme):
    """A partition of others: a table with the client of each sample."""

    module: ClassVar[str] = "schemes"
    in_folder: ClassVar[bool] = True
    raw: ClassVar[Mapping[str, tuple[str, ...]]] = {"table": ("{file}",)}
    name: Literal["table"]
    file: str
    """CSV, TSV or Parquet file below the data folder, with a row for each sample."""
    index: str = "index"
    """Column of the samples' positions in the official training split, from 0."""
    client: str = "client"
    """Column of clients, which are numbered in the order of their names."""


Partition = ByName[
    Iid | Dirichlet | DirichletByClient | DirichletEqual | Shards | Natural | PartitionTable
]


class Core(Settings):
    """The server's own labelled training samples, the core of Lee et al. (2020)."""

    samples: Literal["share", "stratified", "all"] = "share"
    """A share of the partition, which then has one share more than there are clients; as many
    samples, but each class in proportion, before clients divide the others; or all training
    samples, including the clients' (a control experiment).
    """
    classes: Literal["all", "some"] = "all"
    """Whether all classes must occur in the core, or only some."""


class PartitionSettings(Settings):
    """The part of a training recipe that determines which samples each client has."""

    clients: ClientCount
    partition: Partition
    validation: Fraction
    aggregator_fraction: Fraction = 0.0
    core: Core | None = None
    seed: Seed
