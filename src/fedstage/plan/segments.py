"""Segments: rounds first..last of some groups in one job, for runs of many rounds.

The same stage functions are called in one process and write the same files. The files of one folder
are cut into segments

- after every multiple of their length, so that they are the same however long a run is,
- after rounds of a group that are the last of a run, or that another folder continues from, and
- by groups, unless these read one another's files.

So the groups of FedAvg have their own segments, which may run ahead of one another. Students, which
read the predictions of all taught groups, are trained in one job. Logits that nothing in their
folder reads have segments of their own.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from fedstage.plan import graph
from fedstage.plan.runs import Run
from fedstage.plan.stages import of_rounds, walk
from fedstage.plan.training import aggregation, global_model, logits
from fedstage.plan.training_folder import FOLDER, owners
from fedstage.protocol.groups import client_groups
from fedstage.protocol.rounds import checkpoints
from fedstage.settings.recipes import Recipe


@dataclass(frozen=True)
class Segment:
    """Rounds `first` to `last`, inclusive, of `groups`, as far as their files are of `recipe`."""

    recipe: Recipe
    groups: tuple[int, ...]
    first: int
    last: int
    stage: ClassVar[str] = "segment"

    @property
    def name(self) -> str:
        """The name of the rule, without the name of the recipe."""
        groups = "_".join(map(str, self.groups))
        return f"segment_{self.first:04d}_{self.last:04d}_groups_{groups}"

    @property
    def about(self) -> str:
        """The message of the rule."""
        return f"rounds {self.first} to {self.last} of group {', '.join(map(str, self.groups))}"

    @property
    def words(self) -> str:
        """The rounds and the groups, for `fedstage run`."""
        return f"first={self.first} last={self.last} {_written('groups', self.groups)}"

    def jobs(self) -> list[graph.Job]:
        """Return the jobs of the segment, in an order in which they can run."""
        files = _made(self.recipe, self.groups, self.first, self.last)
        folder = graph.folder_of(FOLDER, self.recipe)

        def is_own(job: graph.Job) -> bool:
            return job.folder == folder and job.at["round"] >= self.first

        found = (job for job in walk(files, is_own) if job.at["round"] <= self.last)
        own = (job for job in found if job.at["group"] in self.groups)
        return sorted(own, key=lambda job: int(job.at["round"]))


@dataclass(frozen=True)
class LogitsSegment:
    """Rounds of a group whose members' logits on public images are computed in one job."""

    recipe: Recipe
    group: int
    members: str
    images: str
    rounds: tuple[int, ...]
    stage: ClassVar[str] = "logits_segment"

    @property
    def name(self) -> str:
        """The name of the rule, without the name of the recipe."""
        span = f"{self.rounds[0]:04d}_{self.rounds[-1]:04d}_group_{self.group}"
        return f"logits_{span}_{self.members}_{self.images}"

    @property
    def about(self) -> str:
        """The message of the rule."""
        return f"logits of rounds {self.rounds[0]} to {self.rounds[-1]}"

    @property
    def words(self) -> str:
        """The rounds, and what is computed in them, for `fedstage run`."""
        what = f"group={self.group} members={self.members} images={self.images}"
        return f"{_written('rounds', self.rounds)} {what}"

    def jobs(self) -> list[graph.Job]:
        """Return the jobs of the segment."""
        what = (self.group, self.members, self.images)
        return [logits.job(self.recipe, round_, *what) for round_ in self.rounds]


def _written(name: str, numbers: Iterable[int]) -> str:
    return f"{name}={','.join(map(str, numbers))}"


def _made(recipe: Recipe, groups: Iterable[int], first: int, last: int) -> Iterator[str]:
    """Yield files that depend on all files made by rounds `first` to `last`.

    Some are of later rounds, whose jobs may read logits or a state of round `last`. Where a student
    starts from its previous model, no global model depends on an aggregation.
    """
    end = last + (checkpoints(recipe.ensemble) if recipe.ensemble else 1)
    for group in groups:
        yield global_model(recipe, end, group)
        if group in client_groups(recipe):
            yield from (aggregation(recipe, round_, group) for round_ in range(first, end + 1))


@dataclass
class _Folder:
    """What runs need of a folder of rounds."""

    recipe: Recipe
    #: The rounds in which each group has jobs, and the last ones of the runs that use it.
    rounds: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    stops: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    #: Pairs of groups that read one another's files, with the distance in rounds.
    read: set[tuple[int, int, int]] = field(default_factory=set)
    #: Logits that nothing in the folder reads: rounds by group, kind of members and images.
    logits: dict[tuple[int, str, str], set[int]] = field(default_factory=lambda: defaultdict(set))


def plan(runs: Iterable[Run], length: int) -> tuple[list[Segment], list[LogitsSegment]]:
    """Return the segments of at most `length` rounds that the runs need, each once."""
    lasts: dict[Recipe, set[int]] = defaultdict(set)
    for run in runs:
        if isinstance(run.recipe, Recipe):
            lasts[owners(run.recipe)[0]].add(run.length.rounds)
    folders: dict[str, _Folder] = {}
    for config, rounds in lasts.items():
        _add(folders, config, sorted(rounds))
    own = [(folder, list(_segments(folder, length))) for folder in folders.values()]
    later = (found for folder, parts in own for found in _logits_segments(folder, parts))
    return [part for _, parts in own for part in parts], list(later)


def _add(folders: dict[str, _Folder], recipe: Recipe, lasts: list[int]) -> None:
    """Add the rounds that runs of a configuration train, in the folders that own them."""
    files = _made(recipe, range(recipe.global_models), 1, lasts[-1])
    jobs = walk(files, lambda job: job.alike is job)
    inner = {before for job in jobs for before in of_rounds(job) if before.folder == job.folder}
    needed = {before for job in jobs if job.at["round"] <= lasts[-1] for before in of_rounds(job)}
    own: dict[str, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    ends: dict[tuple[str, int], set[int]] = defaultdict(set)
    for job in jobs:
        folder = folders.setdefault(job.folder, _Folder(job.config))
        round_, group = job.at["round"], job.at["group"]
        for before in of_rounds(job):
            if before.folder != job.folder and before.stage is job.stage is aggregation:
                # Another folder continues from here, perhaps from state, and the last state stays.
                ends[before.folder, before.at["group"]].add(before.at["round"])
            elif before.folder == job.folder and before.at["group"] != group:
                folder.read.add((group, before.at["group"], round_ - before.at["round"]))
        if round_ > lasts[-1]:
            continue
        if job.stage is logits and job not in inner:
            if job in needed:
                folder.logits[group, job.at["members"], job.at["images"]].add(round_)
            continue
        own[job.folder][group].add(round_)
    for path, groups in own.items():
        for group, rounds in groups.items():
            of_runs = ([round_ for round_ in rounds if round_ <= last] for last in lasts)
            folders[path].rounds[group] |= rounds
            folders[path].stops[group] |= {max(trained) for trained in of_runs if trained}
            folders[path].stops[group] |= ends[path, group] & rounds


def _segments(folder: _Folder, length: int) -> Iterator[Segment]:
    """Yield the segments of a folder, each of one group or of groups that must be together."""
    for groups in _together(folder, length):
        first = min(min(folder.rounds[group]) for group in groups)
        stops = set().union(*(folder.stops[group] for group in groups))
        for start, end in cut(first, stops, length):
            used = tuple(group for group in groups if max(folder.stops[group]) >= end)
            yield Segment(folder.recipe, used, start, end)


def _together(folder: _Folder, length: int) -> list[tuple[int, ...]]:
    """Return the groups of a folder, united if they read files of one another in a segment."""
    parts = {group: {group} for group in folder.rounds}
    for group, other, distance in folder.read:
        if distance < length and {group, other} <= parts.keys():
            joined = parts[group] | parts[other]
            parts |= dict.fromkeys(joined, joined)
    return sorted({tuple(sorted(part)) for part in parts.values()})


def cut(first: int, stops: Iterable[int], length: int) -> list[tuple[int, int]]:
    """Cut rounds first..max(stops) after each of `stops` and each multiple of `length`."""
    lasts = sorted(stop for stop in stops if stop >= first)
    if not lasts:
        return []
    multiples = range(-(-first // length) * length, lasts[-1], length)
    ends = sorted({*lasts, *multiples})
    return list(zip([first, *(end + 1 for end in ends[:-1])], ends, strict=True))


def _logits_segments(folder: _Folder, segments: list[Segment]) -> Iterator[LogitsSegment]:
    """Cut the rounds of needed logits like the training of their members."""
    for (group, members, images), needed in folder.logits.items():
        for segment in segments:
            rounds = tuple(sorted(needed & set(range(segment.first, segment.last + 1))))
            if group in segment.groups and rounds:
                yield LogitsSegment(folder.recipe, group, members, images, rounds)
