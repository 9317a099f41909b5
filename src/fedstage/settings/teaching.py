"""What students learn and from whom: complete settings of teachers and students, if any."""

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from fedstage.settings.data import Public
from fedstage.settings.ensembles import EnsembleTrainer, GlobalTrainer
from fedstage.settings.generators import RoundGenerator
from fedstage.settings.server import Server
from fedstage.settings.transfers import Transfer

How = TypeVar("How", covariant=True)
What = TypeVar("What", covariant=True)


@dataclass(frozen=True)
class Teaching(Generic[How]):
    """How students learn: the `distillation` of `public` samples, with a `server`'s settings."""

    server: Server
    distillation: How
    public: Public


@dataclass(frozen=True)
class EnsembleTeaching(Teaching[Transfer]):
    """What is learnt in rounds from an `ensemble`, by students of a `trainer` or by clients.

    A `generator`, if there is one, makes images in place of public ones.
    """

    ensemble: EnsembleTrainer
    trainer: GlobalTrainer | None
    generator: RoundGenerator | None


class Teaches(Protocol[What]):
    """A recipe that may teach."""

    @property
    def server(self) -> Server | None:
        """How students learn."""

    @property
    def teaching(self) -> What | None:
        """What students learn and from whom, if there are students."""


def teaching_of(recipe: Teaches[What]) -> What:
    """Return what students of a recipe learn and from whom; it must have students."""
    assert recipe.teaching is not None, "the graph has such stages only of recipes with students"
    return recipe.teaching


def server_of(recipe: Teaches[object]) -> Server:
    """Return the settings with which a recipe's server trains; it must train something."""
    assert recipe.server is not None, "checked by the recipe: training on the server needs these"
    return recipe.server
