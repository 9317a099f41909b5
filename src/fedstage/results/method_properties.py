"""Properties of methods (FedEED, Table 3; FedSDD, Table 1), computed from the edges of the DAG.

Nothing here knows a method by its name: who waits for whom, and who has to see a client's model,
follows from what the jobs of two rounds read.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import PurePosixPath

from fedstage.errors import FedstageError
from fedstage.plan import artefacts
from fedstage.plan.jobs import Edges, Job, job_of, jobs_of, members
from fedstage.plan.runs import RunLength
from fedstage.settings.ensembles import GlobalModel
from fedstage.settings.lines import Line


@dataclass(frozen=True)
class Cost:
    """A number of models, as a function of C, the number of participants.

    Attributes
    ----------
    models : int
        The number for the line's own C.
    growth : float
        By how much it grows with a participant.
    constant : float
        What is left for C = 0: models = constant + growth C.
    """

    models: int
    growth: float
    constant: float


@dataclass(frozen=True)
class Properties:
    """What the DAG of a method says about a round.

    Attributes
    ----------
    ensemble : Cost
        Members of the teacher: its memory, and the passes of a distillation that caches nothing.
    passes : Cost
        Models that are asked about all public images in a round; what an earlier round asked is
        not asked again.
    students : int
        Distillations in a round.
    sees_clients : bool
        Whether the server reads single clients' models other than to average them: then their sum,
        which is all that secure aggregation shows, is not enough.
    free : float or None
        Share of the participants of the next round that wait for no distillation of this one: they
        train while the server distils. None if nothing is distilled.
    inference : int
        Models that the evaluated predictor consists of.
    """

    ensemble: Cost
    passes: Cost
    students: int
    sees_clients: bool
    free: float | None
    inference: int


def properties(line: Line, length: RunLength) -> Properties:
    """Return the properties of a line in the last round of a run."""
    round = length.rounds
    edges = jobs_of(line, round + 1, first=round)
    return Properties(
        ensemble=_cost(line, lambda one: _asked(one, _teacher(one, round))),
        passes=_cost(line, lambda one: _asked(one, _teacher(one, round), since=round)),
        students=len(_distillations(edges, round)),
        sees_clients=_sees_clients(edges),
        free=free_share(edges, round),
        inference=_inference(line, length),
    )


# --- the server's work ----------------------------------------------------------------------------


def _distillations(edges: Edges, round: int) -> list[Job]:
    return [job for job in edges if job.stage == "distillation" and job.round == round]


def _teacher(line: Line, round: int) -> list[Job]:
    """Return the logits of public images that the distillations of a round read."""
    edges = jobs_of(line, round, first=round)
    read = (job for taught in _distillations(edges, round) for job in edges[taught])
    images = artefacts.public_id(line) if line.global_trainer else ""
    asked = (job for job in read if job.stage == "logits" and _images(job) == images)
    return list(dict.fromkeys(asked))


def _images(job: Job) -> str:
    """Return which images the logits of a job are of."""
    return PurePosixPath(job.file).stem.partition("-")[2]


def _asked(line: Line, logits: Iterable[Job], since: int = 1) -> int:
    """Return how many models are asked by jobs of rounds `since` and later."""
    return sum(members(line, job) for job in logits if job.round >= since)


def _cost(line: Line, count: Callable[[Line], int]) -> Cost:
    """Count for C, C + K and C + 2K participants: every group has one more, or two.

    Raises
    ------
    FedstageError
        If the number does not grow in proportion.
    """
    groups = line.global_models
    larger = [line.participants + groups * step for step in range(3)]
    first, second, third = (
        count(line.model_copy(update={"participants": participants})) for participants in larger
    )
    if third - second != second - first:
        raise FedstageError(
            f"participants = {larger}: {first}, {second}, {third} models: must grow in proportion"
        )
    growth = (second - first) / groups
    return Cost(first, growth, first - growth * line.participants)


# --- who reads what -------------------------------------------------------------------------------


def _sees_clients(edges: Edges) -> bool:
    """Whether any job but an aggregation reads the model of a single client."""
    return any(
        behind.stage == "local_training"
        for job, before in edges.items()
        if job.stage != "aggregation"
        for behind in before
    )


def free_share(edges: Edges, round: int) -> float | None:
    """Return the share of the next round's trainings that wait for no distillation of `round`.

    Parameters
    ----------
    edges : mapping
        The jobs of these two rounds, with what each waits for.
    """
    taught = set(_distillations(edges, round))
    if not taught:
        return None
    waits: dict[Job, bool] = {}
    for job in TopologicalSorter(edges).static_order():
        waits[job] = job in taught or any(waits[before] for before in edges.get(job, ()))
    trains = [job for job in edges if job.stage == "local_training" and job.round == round + 1]
    return sum(not waits[job] for job in trains) / len(trains)


def _inference(line: Line, length: RunLength) -> int:
    """Return how many models predict: one, or the members of the evaluated ensemble."""
    if isinstance(length.evaluate, GlobalModel):
        return 1
    logits = artefacts.member_logits(line, length.rounds, length.evaluate, length.role)
    return _asked(line, (job for file in logits if (job := job_of(file)) is not None))
