"""Commands: what every stage of the workflow has, whether its files follow from settings or not."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


def always(config: Any) -> bool:
    """Return True, for all configurations alike."""
    return True


def never(config: Any) -> bool:
    """Return False, for all configurations alike."""
    return False


@dataclass(frozen=True, eq=False, kw_only=True)
class Command:
    """A subcommand of `fedstage`, a rule and a function of one name.

    Attributes
    ----------
    about : str
        What it does, for ``fedstage --help``.
    outputs : mapping of str to str
        Names of the files that it makes, by option; the first is the main one.
    given : tuple of str
        Options that name files which it reads.
    calls : tuple of str
        The stages that it runs, whose files carry its fingerprint.
    on_device : callable
        Whether it computes on the device of a configuration.
    batches : tuple of str
        Settings whose batch size decides how much memory it needs.
    several : bool
        Whether it trains several clients, which may share a GPU.
    presents : bool
        Whether it draws or tabulates results, of which a run has few.
    about_plan : bool
        Whether its results are about the graph, and so depend on the code of `fedstage.plan`.
    """

    name: str
    about: str
    outputs: Mapping[str, str] = field(default_factory=dict)
    given: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    on_device: Callable[[Any], bool] = never
    batches: tuple[str, ...] = ()
    several: bool = False
    presents: bool = False
    about_plan: bool = False

    @property
    def options(self) -> tuple[str, ...]:
        """The options that name the files which it reads."""
        return self.given
