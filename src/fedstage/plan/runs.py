"""Runs: a recipe, the length of its training, and its evaluation."""

from dataclasses import dataclass, field, replace

from fedstage.plan.data_files import AnyRecipe
from fedstage.settings.experiments import Style
from fedstage.settings.runs import RunLength
from fedstage.settings.scores import Axis, Role


@dataclass(frozen=True)
class Run:
    """One point of an experiment's grid.

    A run that chooses has `candidates`, whose axes are the values to choose among; its recipe is
    the first candidate's. They are `compared` on validation samples, perhaps with other settings.
    The recipe starts from the final model of the run `before`, which is not evaluated.
    """

    axes: dict[str, Axis]  # of the grid, and always `method` and `seed`
    recipe: AnyRecipe
    length: RunLength
    candidates: tuple["Run", ...] = ()
    compared: tuple["Run", ...] = ()
    before: "Run | None" = None
    style: Style = field(default_factory=Style)  # how results show its method

    def evaluated(self) -> list["Run"]:
        """Return the runs whose metrics are read: itself, or each candidate in both roles."""
        if not self.candidates:
            return [self]
        return [*self.compared, *(run for run in self.candidates if run not in self.compared)]

    def trained(self) -> list["Run"]:
        """Return the runs whose recipes are trained: the evaluated runs, and their starts."""
        return [part for run in self.evaluated() for part in run.chain()]

    def chain(self) -> list["Run"]:
        """Return the runs that start from one another, ending in this one."""
        return [*(self.before.chain() if self.before else ()), self]

    def in_role(self, role: Role) -> "Run":
        """Return the run, scored on other samples."""
        return replace(self, length=self.length.model_copy(update={"role": role}))

    def with_seed(self, seed: int) -> "Run":
        """Return the run with another seed, which must be a valid one."""
        recipe = self.recipe.model_copy(update={"seed": seed})
        return replace(self, recipe=recipe, axes={**self.axes, "seed": seed})


def split_target(target: str) -> tuple[str, str]:
    """Read a target such as ``quickstart`` or ``fedsdd_table2/mini``; the scale is `default`."""
    name, _, scale = target.partition("/")
    return name, scale or "default"
