"""Runs: a line, how long it is trained, and what of it is evaluated."""

from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from pydantic import Field

from fedstage.settings.base import Count, Positive, Settings
from fedstage.settings.ensembles import Evaluated, GlobalModel
from fedstage.settings.lines import Line, LocalLine
from fedstage.settings.one_shot import OneShotLine
from fedstage.settings.scores import Axis, Role


class Choose(Settings):
    """Take those of several values with which a run is most accurate, on validation samples.

    `among` has the candidates of each setting, by its path; of several settings, all combinations
    are tried. The first of equals is taken. The test set cannot choose.
    """

    among: Annotated[dict[str, Annotated[list[Any], Field(min_length=1)]], Field(min_length=1)]
    on: Literal["validation"] = "validation"


class RunLength(Settings):
    """What a run has beside its line: not part of the line's identity.

    Clients that train alone are scored as the mean over all, or `evaluate_client` is by itself.
    """

    rounds: Annotated[int, Field(ge=1, le=9900)]  # four digits in names of files
    evaluate_every: Positive = 1
    evaluate: Evaluated = GlobalModel(name="global_model")
    evaluate_client: Count | None = None
    role: Role = "test"
    training: Literal["federated", "alone", "pooled", "one_shot"] = "federated"
    choose: Choose | None = None


@dataclass(frozen=True)
class Run:
    """One point of an experiment's grid.

    Attributes
    ----------
    axes : dict
        The values of the grid's axes at this point, and always `method` and `seed`.
    line : Line, LocalLine or OneShotLine
        What is trained.
    length : RunLength
        How long, and what is evaluated.
    candidates : tuple of Run
        Of a run that chooses among values, the runs with each, the first of which lends it its
        line; their axes are the values.
    before : Run, optional
        What the line starts from, where that was trained before. It is not evaluated.
    """

    axes: dict[str, Axis]
    line: Line | LocalLine | OneShotLine
    length: RunLength
    candidates: tuple["Run", ...] = ()
    before: "Run | None" = None

    def evaluated(self) -> list["Run"]:
        """Return the runs whose metrics are needed: itself, or each candidate in both roles."""
        if not self.candidates:
            return [self]
        roles = dict.fromkeys(("validation", self.length.role))
        return [one.in_role(role) for role in roles for one in self.candidates]

    def trained(self) -> list["Run"]:
        """Return the runs whose lines are trained: those that are evaluated, and their starts."""
        return [part for one in self.evaluated() for part in one.chain()]

    def chain(self) -> list["Run"]:
        """Return the runs that go on from one another, the first one first and this one last."""
        return [*(self.before.chain() if self.before else ()), self]

    def in_role(self, role: Role) -> "Run":
        """Return the same run, scored on other samples."""
        return replace(self, length=self.length.model_copy(update={"role": role}))
