"""Fixed accuracies that runs are to reach, as in Fed-ET's C_acc(x) (Cho et al. 2022, Section 4)."""

from collections.abc import Mapping, Sequence
from typing import cast

from fedstage.errors import FedstageError
from fedstage.settings.cells import as_text, check_cells, names_of
from fedstage.settings.experiments import is_fixed
from fedstage.settings.scores import Axis, Cells, Reach


def fixed_goal(reach: Reach | None, point: Mapping[str, Axis]) -> float | None:
    """Return the accuracy in percent that a run is to reach, None unless `reach` fixes it.

    `point` are the run's values on all axes.
    """
    if not is_fixed(reach):
        return None
    if not isinstance(reach, dict):
        return reach
    ((axis, goals),) = by_value(reach).items()
    return next((goals[name] for name in names_of(axis, point[axis]) if name in goals), None)


def by_value(reach: Reach | None) -> dict[str, dict[str, float]]:
    """Return the goals of the values of an axis, written as texts; empty if there are none."""
    parts = reach.items() if isinstance(reach, dict) else ()
    return {
        axis: {as_text(value): goal for value, goal in goals.items()}
        for axis, goals in parts
        if isinstance(goals, dict)
    }


def check_goal(experiment: str, reach: Reach | None, points: Sequence[Mapping[str, Axis]]) -> None:
    """Refuse a goal that names an axis or value that no cell has, or leaves out a cell.

    Raises
    ------
    FedstageError
        If an axis or a value is in none of the experiment's points, or a point has no goal.
    """
    where = f"{experiment}: communication.reach"
    if isinstance(reach, dict):
        named: Cells = {axis: list(goals) for axis, goals in by_value(reach).items()}
        check_cells(where, experiment, named or cast(Cells, reach), points)
    if not is_fixed(reach):
        return
    for point in points:
        if fixed_goal(reach, point) is None:
            ((axis, goals),) = by_value(reach).items()
            raise FedstageError(
                f"{where}.{axis}: {as_text(point[axis])!r}: missing; there are {', '.join(goals)}"
            )
