"""How training samples are dealt out to clients."""

from typing import Annotated, Literal

from fedstage.settings.base import BY_NAME, IN_SHORT, Positive, Rate, Settings


class Iid(Settings):
    """Samples shuffled and dealt out evenly."""

    name: Literal["iid"]


class Dirichlet(Settings):
    """Each class divided over the clients by proportions drawn from Dir(alpha).

    A client that already has its even share gets no more (the mask of Yurochkin et al.). The draw
    is repeated, at most `max_draws` times, until every client has `min_samples`.
    """

    name: Literal["dirichlet"]
    alpha: Rate
    min_samples: Positive = 10
    max_draws: Positive = 1000
    mask: bool = True


class DirichletEqual(Settings):
    """FedDF's variant: Dirichlet draws in blocks of 10 clients, re-cut to equal sizes."""

    name: Literal["dirichlet_equal"]
    alpha: Rate
    max_draws: Positive = 1000


class Shards(Settings):
    """Sorted by class and cut into shards; every client gets `classes_per_client` of them."""

    name: Literal["shards"]
    classes_per_client: Positive = 2


class Natural(Settings):
    """The client column of the data set."""

    name: Literal["natural"]


Partition = Annotated[Iid | Dirichlet | DirichletEqual | Shards | Natural, BY_NAME, IN_SHORT]
