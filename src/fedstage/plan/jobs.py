"""The jobs of a run's rounds, and which jobs each waits for."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache

from fedstage.plan import graph, training
from fedstage.plan.graph import File
from fedstage.plan.training import DISTILLATIONS, distillation, global_model
from fedstage.settings.recipes import Recipe

#: The stages of a round.
OF_ROUNDS = graph.declared(training)
_STAGES = frozenset(OF_ROUNDS)


@dataclass(frozen=True, order=True)
class Job:
    """The job of a stage in round t of group k, ordered by rounds, which makes `file`.

    All stages that make students are called ``distillation``.
    """

    round: int
    group: int
    stage: str
    file: str
    node: graph.Job | None = field(default=None, compare=False, repr=False)

    @property
    def participant(self) -> int:
        """The participant that a local training trains."""
        assert self.node is not None, "jobs of the graph have one"
        return int(self.node.at["participant"])


#: What each job waits for.
Edges = Mapping[Job, tuple[Job, ...]]


def _named(job: graph.Job) -> Job:
    file = next(iter(job.files.values()))
    name = distillation.name if job.stage in DISTILLATIONS else job.stage.name
    return Job(job.at["round"], job.at["group"], name, file, job)


def jobs_of(recipe: Recipe, last: int) -> dict[Job, tuple[Job, ...]]:
    """Return all jobs behind the global models after round `last`, with their edges."""
    models = (global_model(recipe, last, group) for group in range(recipe.global_models))
    found = walk(models, graph.always)
    return dict(sorted((_named(job), tuple(map(_named, of_rounds(job)))) for job in found))


def walk(files: Iterable[str], belongs: Callable[[graph.Job], bool]) -> list[graph.Job]:
    """Return the jobs of rounds that are behind files and `belong`, each after those behind it.

    Jobs behind one that does not belong are not searched.
    """
    own = (file for file in files if isinstance(file, File) and file.job.stage in _STAGES)
    return graph.behind(own, belongs, of_rounds)


@cache
def of_rounds(job: graph.Job) -> tuple[graph.Job, ...]:
    """Return the jobs of rounds whose files a job reads."""
    if job.alike is not job:
        return of_rounds(job.alike)
    return tuple(before for before in job.before if before.stage in _STAGES)
