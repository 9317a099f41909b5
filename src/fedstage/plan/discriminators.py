"""Clients' discriminators and their odds on public images (FedGO): whose they are, and where.

As in `fedstage.plan.sharing`, they belong to the line stripped of every setting that cannot reach
them: what clients train in the rounds, and what the server does with their votes.
"""

from functools import cache
from typing import Any

from fedstage.plan.identity import discriminator_id
from fedstage.plan.one_shot_sharing import NO_CLIENT
from fedstage.plan.results import RESULTS
from fedstage.settings.ensembles import Odds
from fedstage.settings.lines import DiscriminatorLine, Line
from fedstage.settings.models import LogisticRegression

_READ = ("data", "clients", "partition", "validation", "core", "public", "seed")


def weighs_by_odds(line: Line) -> bool:
    """Whether clients' votes are weighted by the odds of their discriminators."""
    return isinstance(line.ensemble, Odds) and line.global_trainer is not None


@cache
def discriminating(line: Line) -> DiscriminatorLine:
    """Return the line of the discriminators that weigh a line's votes."""
    assert line.ensemble is not None, "its caller has looked: votes are weighted by odds"
    read: dict[str, Any] = {name: getattr(line, name) for name in _READ}
    plain = {"compile": False, "cuda_graphs": False, "logits": "fp32"}
    return DiscriminatorLine.model_construct(
        **read,
        participants=1,
        model=LogisticRegression(name="logistic_regression"),
        client=NO_CLIENT,
        ensemble=line.ensemble.model_copy(update={"average": "logits"}),
        numerics=line.numerics.model_copy(update=plain),
    )


def folder(line: Line) -> str:
    """Return the folder of the generator, the discriminators and their odds."""
    return f"{RESULTS}/discriminators/{discriminator_id(discriminating(line))}"


def generator_file(line: Line) -> str:
    """Return the generator that the server has trained on its public images."""
    return f"{folder(line)}/generator.safetensors"


def discriminators(line: Line) -> list[str]:
    """Return the discriminators of all clients, in their order."""
    return [f"{folder(line)}/client_{client}.safetensors" for client in range(line.clients)]


def odds_files(line: Line) -> list[str]:
    """Return the odds of all clients on the public images, if votes are weighted by them."""
    return [f"{folder(line)}/odds.safetensors"] if weighs_by_odds(line) else []
