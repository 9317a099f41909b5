"""When a run is as accurate as another one: by then it has moved so many bytes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from fedstage.results.cells import as_text, selects
from fedstage.results.communication.runs import RunTraffic
from fedstage.settings.scores import Axis, Cells


def with_references(runs: Sequence[RunTraffic], cells: Cells | None) -> list[RunTraffic]:
    """Return runs over rounds with the score that they are to reach, where there is one.

    Parameters
    ----------
    runs : sequence of RunTraffic
        Of all cells and seeds.
    cells : mapping or None
        Runs whose last score is the one to reach, for those that agree with them on all axes which
        `cells` does not name, and on the seed.
    """
    if cells is None:
        return list(runs)
    references = {
        _rest(run.settings, cells): run.course[-1].score
        for run in runs
        if selects(cells, run.settings)
    }
    return [
        replace(run, target=references.get(_rest(run.settings, cells)))
        if run.iterative and not selects(cells, run.settings)
        else run
        for run in runs
    ]


def _rest(settings: Mapping[str, Axis], named: Iterable[str]) -> tuple[str, ...]:
    """Return a run's place on the axes that are not named, the seed's among them."""
    return tuple(as_text(value) for axis, value in settings.items() if axis not in named)
