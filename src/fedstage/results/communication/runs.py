"""The communication of each run: its phases, the bytes moved by each round, and its scores."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from fedstage.errors import FedstageError
from fedstage.experiments.goals import fixed_goal
from fedstage.experiments.runs_file import ExperimentRun
from fedstage.results.communication.phases import (
    Moved,
    Phase,
    bytes_until,
    held_bytes,
    one_shot_bytes,
    phases_of,
    total,
)
from fedstage.results.tables.labels import METHOD
from fedstage.results.tables.measured import read_metrics
from fedstage.settings.cells import as_text, selects
from fedstage.settings.experiments import is_fixed
from fedstage.settings.recipes import Recipe
from fedstage.settings.scores import Axis, Cells, Metric, Reach


@dataclass(frozen=True)
class Reached:
    """An evaluated round, its score in percent, and the bytes moved by its end."""

    round: int
    score: float
    moved: Moved


@dataclass(frozen=True)
class RunTraffic:
    """The phases, course and sizes of a run."""

    settings: Mapping[str, Axis]  # its value on every axis
    phases: list[Phase]  # all in which anything travels
    course: list[Reached]  # one for each evaluated round
    best: Reached | None  # the best round on validation samples, if it has rounds and samples
    one_shot: int  # bytes of one model up and one down, the unit of `times_one_shot`
    held: int  # bytes that prediction needs in memory
    role: str  # the samples of its scores
    iterative: bool  # whether it has a course over rounds
    communicates: bool  # whether anything travels at all
    memory_mib: float | None  # the paper's number for `held`
    target: float | None = None  # the score to reach, in percent
    published_params: float | None = None  # the paper's number for what is sent until it is reached

    @property
    def reached(self) -> Reached | None:
        """The first evaluated round with at least the target's score, if any."""
        if self.target is None:
            return None
        return next((one for one in self.course if one.score >= self.target), None)

    @property
    def rounds(self) -> int:
        """The number of rounds in which anything travels."""
        return sum(phase.rounds for phase in self.phases)

    @property
    def in_rounds(self) -> Moved:
        """Bytes that are sent and received in rounds."""
        return total(phase for phase in self.phases if phase.rounds)

    @property
    def once(self) -> Moved:
        """Bytes that are sent and received outside of rounds."""
        return total(phase for phase in self.phases if not phase.rounds)

    @property
    def total(self) -> Moved:
        """Bytes that are sent and received until training ends."""
        return total(self.phases)

    def of_model(self, moved: Moved) -> float:
        """Return bytes in both directions as a multiple of one model up and one down."""
        return moved.both / self.one_shot


def read_traffic(run: ExperimentRun, metric: Metric) -> RunTraffic:
    """Read the tables of a run, and its metrics.

    Raises
    ------
    FedstageError
        If a file is missing or damaged, or if the metrics that choose a round are not from
        validation samples.
    """
    which = run.which()
    parts = run.candidates[which].parts
    phases, last = phases_of(parts), parts[-1]
    until = bytes_until(phases, parts)
    metrics = read_metrics(run.metrics, metric)
    scores = zip(metrics["round"].astype(int), metrics[metric].astype(float), strict=True)
    course = [Reached(round_, score, until[round_]) for round_, score in scores]
    iterative = isinstance(last.recipe, Recipe) and len(course) > 1
    best = None
    if iterative and run.validation is not None:
        round_ = best_round(run.validation[which], metric)
        best = next((evaluated for evaluated in course if evaluated.round == round_), None)
    return RunTraffic(
        settings=run.settings,
        phases=phases,
        course=course,
        best=best,
        one_shot=one_shot_bytes(last),
        held=held_bytes(last),
        role=run.length.role,
        iterative=iterative,
        communicates=bool(phases),
        memory_mib=run.memory_mib,
        published_params=run.published_params,
    )


def best_round(path: str, metric: Metric) -> int:
    """Return the round that is best on validation samples, the first of equals.

    Raise FedstageError if the metrics are from other samples, which must not choose a round.
    """
    frame = read_metrics(path, metric)
    for role in frame["role"].unique():
        if role != "validation":
            raise FedstageError(f"{path}: role = {role!r}: only 'validation' may choose a round")
    return int(frame["round"][frame[metric].argmax()])


def with_one_unit(runs: Sequence[RunTraffic]) -> list[RunTraffic]:
    """Return runs with the same unit wherever only their methods differ, the largest of theirs."""
    units: dict[tuple[str, ...], int] = {}
    for run in runs:
        place = _rest(run.settings, [METHOD])
        units[place] = max(run.one_shot, units.get(place, 0))
    return [replace(run, one_shot=units[_rest(run.settings, [METHOD])]) for run in runs]


def with_goals(runs: Sequence[RunTraffic], reach: Reach | None) -> list[RunTraffic]:
    """Return runs with the score that they are to reach, if there is one.

    A fixed score applies to all runs. If `reach` names cells, the score applies to runs over
    rounds. It is the last score of the run among these cells that agrees with them on the seed and
    on all axes that `reach` does not name.
    """
    if reach is None:
        return list(runs)
    if is_fixed(reach):
        return [replace(run, target=fixed_goal(reach, run.settings)) for run in runs]
    cells = cast(Cells, reach)
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
    """Return a run's values on the seed and on the axes that are not named."""
    return tuple(as_text(value) for axis, value in settings.items() if axis not in named)
