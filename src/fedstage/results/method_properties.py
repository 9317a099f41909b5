"""Properties of methods (FedEED, Table 3; FedSDD, Table 1), computed from the edges of the DAG.

This module does not depend on the names of methods: the inputs of the jobs of two rounds determine
which jobs wait, and which see a client's model.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import PurePosixPath

from fedstage.errors import FedstageError
from fedstage.plan.data_files import public_id
from fedstage.plan.jobs import Edges, Job, job_of, jobs_of, members
from fedstage.plan.participants import groups_drawn
from fedstage.plan.training import SECURE, member_logits, teacher_models
from fedstage.settings.ensembles import GlobalModel
from fedstage.settings.exchange import generates, teaches_live
from fedstage.settings.groups import client_groups
from fedstage.settings.recipes import Recipe
from fedstage.settings.runs import RunLength


@dataclass(frozen=True)
class Cost:
    """A number of models, as a function of C participants: models = constant + growth C."""

    models: int
    growth: float
    constant: float


@dataclass(frozen=True)
class Properties:
    """Properties of a round, computed from a method's DAG."""

    #: Members of the teacher: its memory, and the passes of a distillation that caches nothing.
    ensemble: Cost
    #: Models that predict all public images in a round; logits of earlier rounds are reused.
    passes: Cost
    #: Distillations in a round.
    students: int
    #: The stage by which the server reads single clients' models other than to average them, if
    #: any. Then their sum, which is all that secure aggregation reveals, is not enough.
    reader: str | None
    #: Share of the participants of the next round that wait for no distillation of this one: they
    #: train while the server distils. None if nothing is distilled.
    free: float | None
    #: Models of the evaluated predictor.
    inference: int

    @property
    def sees_clients(self) -> bool:
        """Whether the server needs more of single clients than the sum of their updates."""
        return self.reader is not None


def properties(recipe: Recipe, length: RunLength) -> Properties:
    """Return the properties of a recipe in the last round of a run."""
    if groups_drawn(recipe):
        raise FedstageError(
            "properties: client_groups = 'drawn': must be 'by_index', because edges do not tell "
            "how many of a group's participants are filled"
        )
    if recipe.participation == "poisson":
        raise FedstageError(
            "properties: participation = 'poisson': must be another, because edges do not tell how "
            "many participants are filled"
        )
    round_ = length.rounds
    edges = jobs_of(recipe, round_ + 1, first=round_)
    return Properties(
        ensemble=_cost(
            recipe, lambda varied: _models(_teacher(varied, round_)) + _live(varied, round_)
        ),
        passes=_cost(
            recipe,
            lambda varied: _models(_teacher(varied, round_), since=round_) + _live(varied, round_),
        ),
        students=len(_distillations(edges, round_)),
        reader=_reader(edges),
        free=free_share(edges, round_),
        inference=_inference(recipe, length),
    )


def _distillations(edges: Edges, round_: int) -> list[Job]:
    return [job for job in edges if job.stage == "distillation" and job.round == round_]


def _teacher(recipe: Recipe, round_: int) -> list[Job]:
    """Return the logits of public images that the distillations of a round read."""
    edges = jobs_of(recipe, round_, first=round_)
    public = public_id(recipe) if recipe.global_trainer and not generates(recipe) else ""
    logits = dict.fromkeys(
        job
        for distillation in _distillations(edges, round_)
        for job in edges[distillation]
        if job.stage == "logits" and PurePosixPath(job.file).stem.partition("-")[2] == public
    )
    return list(logits)


def _live(recipe: Recipe, round_: int) -> int:
    """Return the number of models that students query directly: all of them, in each round."""
    return len(teacher_models(recipe, round_)) if teaches_live(recipe) else 0


def _models(logits: Iterable[Job], since: int = 1) -> int:
    """Return the number of models behind logits of rounds `since` and later."""
    return sum(members(job) for job in logits if job.round >= since)


def _cost(recipe: Recipe, count: Callable[[Recipe], int]) -> Cost:
    """Fit a line to the numbers for C, C + K and C + 2K participants; raise if it does not fit."""
    groups = len(client_groups(recipe))
    larger = [recipe.participants + groups * step for step in range(3)]
    first, second, third = (
        count(recipe.model_copy(update={"participants": participants})) for participants in larger
    )
    if third - second != second - first:
        raise FedstageError(
            f"participants = {larger}: {first}, {second}, {third} models: must grow in proportion"
        )
    growth = (second - first) / groups
    return Cost(first, growth, first - growth * recipe.participants)


def _reader(edges: Edges) -> str | None:
    """Return the first stage that reads a client's model, other than to average it or its head."""
    others = {"aggregation", "head_sharing", *(stage.name for stage in SECURE)}
    readers = (
        job.node.stage.name
        for job, before in edges.items()
        if job.node and job.stage not in others
        if any(read.stage == "local_training" for read in before)
    )
    return next(readers, None)


def free_share(edges: Edges, round_: int) -> float | None:
    """Return the share of the next round's trainings that wait for no distillation of `round_`.

    `edges` connect the jobs of both rounds.
    """
    distillations = set(_distillations(edges, round_))
    if not distillations:
        return None
    waits: dict[Job, bool] = {}
    for job in TopologicalSorter(edges).static_order():
        waits[job] = job in distillations or any(waits[before] for before in edges.get(job, ()))
    trains = [job for job in edges if job.stage == "local_training" and job.round == round_ + 1]
    return sum(not waits[job] for job in trains) / len(trains)


def _inference(recipe: Recipe, length: RunLength) -> int:
    """Return how many models predict: one, or the members of the evaluated ensemble."""
    if isinstance(length.evaluate, GlobalModel):
        return 1
    logits = member_logits(recipe, length.rounds, length.evaluate, length.role)
    return _models(job for file in logits if (job := job_of(file)) is not None)
