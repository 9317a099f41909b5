"""Inputs and outputs of segments, and which of their files stay on disk."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from itertools import chain

from fedstage.plan.graph import File, Job, behind, files_in, listed
from fedstage.plan.runs import Run
from fedstage.plan.scores import evaluation, metrics_file
from fedstage.plan.segments import Kept, Segment
from fedstage.plan.training import STEPS, logits
from fedstage.settings.config_file import Keep
from fedstage.settings.recipes import Recipe
from fedstage.settings.runs import RunLength

#: Kinds of files of rounds, by the stages that make no models.
KINDS = {
    "local_training": "updates",
    **dict.fromkeys((stage.name for stage in STEPS), "updates"),
    "logits": "logits",
    "cached_labels": "logits",
    "selected_labels": "logits",
}
#: Options of files that do not change in a run: settings, data sets, and files made from these.
_COMMON = frozenset(
    ("recipe", "info", "data", "clients", "public", "odds", "histogram", "server_validation")
)


def kind_of(file: File) -> str:
    """Return the kind of a file of a round, which decides whether the file stays on disk.

    Only the last ``state`` of a segment stays, from which later rounds continue; no ``secret``
    does.
    """
    stage = file.job.stage
    if file.output in stage.temporary:
        return "state"
    if file.output in stage.secret:
        return "secret"
    return "participants" if file.output == "participants" else KINDS.get(stage.name, "models")


def inputs(jobs: Iterable[Job]) -> tuple[list[str], list[str]]:
    """Return the settings and data that jobs read, and the files of rounds that others make."""
    common: dict[str, None] = {}
    others: dict[str, None] = {}
    own = list(jobs)
    made = {file for job in own for file in job.files.values()}
    for job in dict.fromkeys(job.alike for job in own):
        for option, files in job.inputs.items():
            read = common if option in _COMMON else others
            read.update(dict.fromkeys(file for file in listed(files) if file not in made))
    return list(common), list(others)


def outputs(jobs: Iterable[Job], kept: Kept | None = None) -> list[File]:
    """Return the files of jobs that stay, in the order in which they are made; by default all.

    The order matters: snakemake renews the times of outputs one after the other, and a file must
    not be older than its inputs.
    """
    own = list(jobs)
    last = {(job.stage, job.at["group"]): job for job in own}
    return [
        file
        for job in own
        for file in job.files.values()
        if _stays(file, kept, job is last[job.stage, job.at["group"]])
    ]


def _stays(file: File, kept: Kept | None, last: bool) -> bool:
    kind = kind_of(file)
    if kind == "state":
        return last
    if kind == "secret":
        return False
    return kept is None or kind not in kept or file.job.at["round"] in kept[kind]


def rounds_kept(segment: Segment, jobs: Iterable[Job], keep: Keep, read: Collection[str]) -> Kept:
    """Return the rounds of a segment whose files stay, by kind.

    Depending on `keep`, all files stay, or all but the updates that no job reads (``models``), or
    only the files that jobs `read` and the models of the last round (``needed``).
    """
    every = tuple(range(segment.first, segment.last + 1))
    needed: dict[str, set[int]] = defaultdict(set)
    for job in jobs:
        for file in job.files.values():
            if file in read:
                needed[kind_of(file)].add(job.at["round"])
    needed["models"].add(segment.last)
    kinds = ("updates", "models", "participants", "logits")
    whole = {"all": kinds, "models": kinds[1:], "needed": ()}[keep]
    return {kind: every if kind in whole else tuple(sorted(needed[kind])) for kind in kinds}


def files_read(runs: Iterable[Run], others: Iterable[Iterable[str]]) -> set[str]:
    """Return the files of rounds that segments (their `inputs` by others) or evaluations read."""
    paths = set(chain.from_iterable(others))
    for run in runs:
        if isinstance(run.recipe, Recipe):
            paths.update(_evaluated(run.recipe, run.length))
    return paths


def _evaluated(recipe: Recipe, length: RunLength) -> Iterator[str]:
    """Yield the files that an evaluation, or the logits that it reads, are made from."""
    scores = [metrics_file(recipe, length)]
    for job in behind(scores, lambda job: job.stage in (evaluation, logits)):
        yield from (file for file in files_in(job.inputs) if file.job.stage is not logits)
