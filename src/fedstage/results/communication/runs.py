"""The communication of each run: its phases, what it has moved by each round, and its scores."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fedstage.errors import FedstageError
from fedstage.results.communication.described import CommunicationRun
from fedstage.results.communication.phases import (
    Phase,
    bytes_until,
    held_bytes,
    one_shot_bytes,
    phases_of,
    total,
)
from fedstage.results.tables.runs import read_metrics
from fedstage.settings.lines import Line
from fedstage.settings.scores import Axis, Metric
from fedstage.storage.files import load_json


@dataclass(frozen=True)
class Reached:
    """A score, and what one client has moved for it.

    Attributes
    ----------
    round : int
        The evaluated round.
    up, down : float
        Bytes that one client has sent and received by its end.
    score : float
        Percent.
    """

    round: int
    up: float
    down: float
    score: float


@dataclass(frozen=True)
class RunTraffic:
    """What is known of a run.

    Attributes
    ----------
    settings : dict
        Its value on every axis.
    phases : list of Phase
        What travels.
    course : list of Reached
        A point an evaluated round, with what has travelled by then.
    best : Reached or None
        The round that is best on validation samples, the first of equals; None where there are no
        rounds or no such samples.
    one_shot : int
        Bytes of one model up and one down.
    held : int
        Bytes of what must be held to predict.
    iterative, communicates : bool
        Whether it has a course over rounds, and whether anything travels at all.
    memory_mib : float or None
        What a paper reports of `held`.
    target : float or None
        The score that it is to reach, in percent.
    """

    settings: Mapping[str, Axis]
    phases: list[Phase]
    course: list[Reached]
    best: Reached | None
    one_shot: int
    held: int
    iterative: bool
    communicates: bool
    memory_mib: float | None
    target: float | None = None

    @property
    def reached(self) -> Reached | None:
        """The first evaluated round with at least the target's score; None where none has it."""
        if self.target is None:
            return None
        return next((one for one in self.course if one.score >= self.target), None)

    @property
    def total(self) -> tuple[float, float]:
        """Bytes that one client sends and receives until training ends."""
        return total(self.phases)


def read_traffic(run: CommunicationRun, metric: Metric) -> RunTraffic:
    """Read the tables of a run, and its metrics.

    Raises
    ------
    FedstageError
        If a file is missing or damaged, or what was to choose a round is not of validation samples.
    """
    which = _chosen(run)
    parts = run.candidates[which].parts
    phases, last = phases_of(parts), parts[-1]
    until = bytes_until(phases, parts)
    scores = _scores(run.metrics, metric)
    course = [Reached(round, *until[round], score) for round, score in scores.items()]
    iterative = isinstance(last.line, Line) and len(course) > 1
    best = None
    if iterative and run.validation is not None:
        round = best_round(run.validation[which], metric)
        best = next((one for one in course if one.round == round), None)
    return RunTraffic(
        settings=run.settings,
        phases=phases,
        course=course,
        best=best,
        one_shot=one_shot_bytes(last),
        held=held_bytes(last),
        iterative=iterative,
        communicates=bool(phases),
        memory_mib=run.memory_mib,
    )


def best_round(path: str, metric: Metric) -> int:
    """Return the round that is best on validation samples, the first of equals.

    Raises
    ------
    FedstageError
        If the metrics are of other samples, which must choose nothing.
    """
    frame = read_metrics(path, metric)
    for role in frame["role"].unique():
        if role != "validation":
            raise FedstageError(f"{path}: role = {role!r}: only 'validation' may choose a round")
    return int(frame["round"][frame[metric].argmax()])


def _scores(path: str, metric: Metric) -> dict[int, float]:
    frame = read_metrics(path, metric)
    return dict(zip(frame["round"].astype(int), frame[metric].astype(float), strict=True))


def _chosen(run: CommunicationRun) -> int:
    """Return which of the candidates was chosen."""
    if run.chosen is None:
        return 0
    values = load_json(Path(run.chosen))["chosen"]
    return [one.values for one in run.candidates].index(values)
