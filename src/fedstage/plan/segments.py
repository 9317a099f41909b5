"""Segments: rounds first..last of one group in one job, for runs of many rounds.

The same stage functions are called in one process and write the same files. Segments are cut

- after every multiple of their length, so that they are the same however long a run is,
- after the last round of every run that uses the group, and
- where a distilled line takes over, so that it need not wait for rounds that it does not share.

An undistilled group has its own segments, which run ahead. The students of a distilled line need
one another and the teacher in every round: one job trains them all, and reads the other groups'
logits, which have segments as well. With shared control variates all groups need one another in
every round, and one job trains them all: those of the undistilled line, and those of a distilled
line from the first round that a distillation reaches. So do all groups that take the head of the
server's model. And where the server's model learns from features, all groups are in one job.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import ClassVar

from fedstage.plan import artefacts
from fedstage.plan.members import checkpoints
from fedstage.plan.participants import is_stale
from fedstage.plan.runs import Run
from fedstage.plan.sharing import (
    caches_labels,
    exchanges_features,
    exchanges_logits,
    first_distillation,
    first_taught,
    hears_server,
    is_distilled,
    logits_owner,
    normalised,
    shares_control,
    students,
    takes_head,
    taught_together,
    trained_together,
    undistilled,
    update_owner,
)
from fedstage.settings.groups import client_groups, group_slots
from fedstage.settings.lines import Line


@dataclass(frozen=True)
class Segment:
    """Rounds `first` to `last`, inclusive, of `groups` that are trained in one job.

    The `line` owns the files. The groups are one of an undistilled line, or all students of a
    distilled one; all groups with shared control variates, or exchanged features. Rounds up to the
    first distilled one are trained by the undistilled line.
    """

    line: Line
    groups: tuple[int, ...]
    first: int
    last: int
    stage: ClassVar[str] = "segment"
    members: ClassVar[None] = None

    @property
    def name(self) -> str:
        """The name of the rule, without that of the line."""
        groups = "_".join(map(str, self.groups))
        return f"segment_{self.first:04d}_{self.last:04d}_groups_{groups}"

    @property
    def about(self) -> str:
        """The message of the rule."""
        return f"rounds {self.first} to {self.last} of group {', '.join(map(str, self.groups))}"


@dataclass(frozen=True)
class LogitsSegment:
    """Rounds of a group whose members' logits on public images are computed in one job."""

    line: Line
    group: int
    members: str
    images: str
    public: str
    rounds: tuple[int, ...]
    stage: ClassVar[str] = "logits_segment"

    @property
    def name(self) -> str:
        """The name of the rule, without that of the line."""
        span = f"{self.rounds[0]:04d}_{self.rounds[-1]:04d}_group_{self.group}"
        return f"logits_{span}_{self.members}_{self.images}"

    @property
    def about(self) -> str:
        """The message of the rule."""
        return f"logits of rounds {self.rounds[0]} to {self.rounds[-1]}"


@dataclass
class _Demand:
    """The rounds that runs need: last rounds by line and group, or distilled line, and logits."""

    stops: dict[tuple[Line, int], set[int]] = field(default_factory=lambda: defaultdict(set))
    taught: dict[Line, set[int]] = field(default_factory=lambda: defaultdict(set))
    # By line, group, kind of members, name of the images, and their file.
    logits: dict[tuple[Line, int, str, str, str], set[int]] = field(
        default_factory=lambda: defaultdict(set)
    )


def plan(runs: Iterable[Run], length: int) -> tuple[list[Segment], list[LogitsSegment]]:
    """Return the segments of at most `length` rounds that the runs need, each once."""
    demand = _Demand()
    for run in runs:
        if isinstance(run.line, Line):
            _add(demand, normalised(run.line), run.length.rounds)
    segments = list(_undistilled_segments(demand, length))
    taught = [
        Segment(line, taught_together(line), first, last)
        for line, stops in demand.taught.items()
        for first, last in cut(first_taught(line), stops, length)
    ]
    return segments + taught, list(_logits_segments(demand, segments))


def _undistilled_segments(demand: _Demand, length: int) -> Iterator[Segment]:
    """Yield the segments of single groups, then those of groups that share control variates."""
    together: dict[Line, dict[int, set[int]]] = defaultdict(dict)
    for (line, group), stops in demand.stops.items():
        # One round reads earlier rounds only, unless labels are made of what all groups say in it.
        if trained_together(line) and (length > 1 or caches_labels(line)):
            together[line][group] = stops
            continue
        for first, last in cut(1, stops, length):
            yield Segment(line, (group,), first, last)
    for line, groups in together.items():
        for first, last in cut(1, set().union(*groups.values()), length):
            longer = (group for group, stops in groups.items() if max(stops) >= last)
            yield Segment(line, tuple(longer), first, last)


def cut(first: int, stops: Iterable[int], length: int) -> list[tuple[int, int]]:
    """Cut rounds first..max(stops) after each of `stops` and each multiple of `length`."""
    lasts = sorted(stop for stop in stops if stop >= first)
    if not lasts:
        return []
    multiples = range(-(-first // length) * length, lasts[-1], length)
    ends = sorted({*lasts, *multiples})
    return list(zip([first, *(end + 1 for end in ends[:-1])], ends, strict=True))


def _add(demand: _Demand, line: Line, rounds: int) -> None:
    """Add the rounds that a run of a line trains, in the lines that own them."""
    if exchanges_features(line):
        demand.taught[line].add(rounds)
        return
    base = undistilled(line)
    for group in client_groups(line):
        demand.stops[base, group].update(_undistilled_ends(line, group, rounds))
    if not 0 < first_taught(line) <= rounds:
        return
    demand.taught[line].add(rounds)
    if not 0 < first_distillation(line) <= rounds or exchanges_logits(line):
        return  # clients that exchange logits compute them in their segments
    assert line.ensemble is not None, "checked by Line: a global trainer has an ensemble"
    first = max(1, first_distillation(line) - checkpoints(line.ensemble) + 1)
    spoken = [round for round in range(first, rounds + 1) if says(line, round)]
    for group, logits in product(client_groups(line), artefacts.teaching_logits(line)):
        members = logits[0]
        demand.logits[(base, group, *logits)].update(
            round for round in spoken if logits_owner(line, round, group, members) == base
        )


def _undistilled_ends(line: Line, group: int, rounds: int) -> set[int]:
    """Return the last round of a group that nothing taught reaches, as `sharing.owner` says.

    After it there may be another, in which a stale participant still starts from an older model.
    """
    fork = first_taught(line)
    if not fork:
        return {rounds}
    if group not in students(line) and not takes_head(line, group) and not hears_server(line):
        return {min(fork + 1, rounds) if shares_control(line) else rounds}
    last = min(fork, rounds)
    later = product(range(rounds, last, -1), group_slots(line, group) if is_stale(line) else ())
    base = undistilled(line)
    stale = (t for t, slot in later if update_owner(line, t, group, slot) == base)
    return {last, next(stale, last)}


def says(line: Line, round: int) -> bool:
    """Whether students learn from a round's logits, in this round or, as checkpoints, later."""
    if line.ensemble is None or round < first_distillation(line) - checkpoints(line.ensemble) + 1:
        return False
    later = range(round, round + checkpoints(line.ensemble))
    return any(is_distilled(line, t, group) for t in later for group in students(line)[:1])


def _logits_segments(demand: _Demand, segments: list[Segment]) -> Iterator[LogitsSegment]:
    """Cut the rounds of needed logits like the training of their members."""
    by_group: dict[tuple[Line, int], list[Segment]] = defaultdict(list)
    for segment in segments:
        for group in segment.groups:
            by_group[segment.line, group].append(segment)
    for key, needed in demand.logits.items():
        for segment in by_group[key[:2]]:
            rounds = tuple(sorted(needed & set(range(segment.first, segment.last + 1))))
            if rounds:
                yield LogitsSegment(*key, rounds)
