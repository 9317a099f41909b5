"""Segments: rounds first..last of one group in one job, for runs of many rounds.

The same stage functions are called in one process and write the same files. Declared outputs are
those that are kept: all, or those that some job reads (`Kept`). Segments are cut

- after every multiple of their length, so that they are the same however long a run is,
- after the last round of every run that uses the group, and
- where a distilled line takes over, so that it need not wait for rounds that it does not share.

An undistilled group has segments of its own, which run ahead. The students of a distilled line need
one another and the teacher in every round: one job holds them all, and reads the other groups'
logits, which are computed by segments as well. Where control variates are shared, all groups need
one another in every round, and one job holds them all: of the undistilled line, and of a distilled
one from the first round on that a distillation reaches them in.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from itertools import chain, product

from fedstage.plan import artefacts
from fedstage.plan.members import checkpoints, member_kinds
from fedstage.plan.runs import Run, RunLength
from fedstage.plan.sharing import (
    first_distillation,
    is_distilled,
    keeps_state,
    line_id,
    normalised,
    owner,
    shares_control,
    students,
    undistilled,
)
from fedstage.settings.config_file import Keep
from fedstage.settings.ensembles import EnsembleTrainer, GlobalModel
from fedstage.settings.lines import Line


@dataclass(frozen=True)
class Segment:
    """Rounds of one or several groups that are trained in one job.

    Attributes
    ----------
    line : Line
        The line that owns the files.
    groups : tuple of int
        One group of an undistilled line, or all students of a distilled one; with shared control
        variates all groups.
    first, last : int
        The rounds, both included. What no distillation has reached yet is trained by the line
        without distillation, as is the first round that is distilled.
    """

    line: Line
    groups: tuple[int, ...]
    first: int
    last: int

    @property
    def name(self) -> str:
        """A name for the rule."""
        groups = "_".join(map(str, self.groups))
        return f"segment_{self.first:04d}_{self.last:04d}_groups_{groups}_{line_id(self.line)}"


@dataclass(frozen=True)
class LogitsSegment:
    """Rounds of a group whose members' logits on public images are computed in one job."""

    line: Line
    group: int
    members: str
    images: str
    public: str
    rounds: tuple[int, ...]

    @property
    def name(self) -> str:
        """A name for the rule."""
        span = f"{self.rounds[0]:04d}_{self.rounds[-1]:04d}"
        what = f"{self.members}_{self.images}"
        return f"logits_{span}_group_{self.group}_{what}_{line_id(self.line)}"


@dataclass(frozen=True)
class Kept:
    """The rounds of a segment whose files stay on disk, by kind.

    Attributes
    ----------
    updates : tuple of int
        Rounds whose updates stay.
    models : tuple of int
        Rounds whose aggregated and distilled models stay; the last round is always among them.
    participants : tuple of int
        Rounds whose tables of participants stay.
    logits : tuple of int
        Rounds whose logits stay, where the segment computes any for its own teachers.
    """

    updates: tuple[int, ...]
    models: tuple[int, ...]
    participants: tuple[int, ...]
    logits: tuple[int, ...]


@dataclass
class _Demand:
    """What the runs ask for."""

    stops: dict[tuple[Line, int], set[int]] = field(default_factory=lambda: defaultdict(set))
    taught: dict[Line, set[int]] = field(default_factory=lambda: defaultdict(set))
    # Line, group, kind of members, name of the images, and their file.
    logits: dict[tuple[Line, int, str, str, str], set[int]] = field(
        default_factory=lambda: defaultdict(set)
    )


def plan(runs: Iterable[Run], length: int) -> tuple[list[Segment], list[LogitsSegment]]:
    """Return the segments of at most `length` rounds that the runs need, each once."""
    demand = _Demand()
    for run in runs:
        if isinstance(run.line, Line):
            _ask(demand, normalised(run.line), run.length.rounds)
    segments = [*_trained_alone(demand, length), *_trained_together(demand, length)]
    taught = [
        Segment(line, _groups_of_a_taught(line), first, last)
        for line, stops in demand.taught.items()
        for first, last in cut(first_distillation(line), stops, length)
    ]
    return segments + taught, list(_logits_segments(demand, segments))


def _trained_alone(demand: _Demand, length: int) -> Iterator[Segment]:
    """Yield the segments of groups that do not read what the others do in the same segment."""
    for (line, group), stops in demand.stops.items():
        if not _in_one_job(line, length):
            for first, last in cut(1, stops, length):
                yield Segment(line, (group,), first, last)


def _trained_together(demand: _Demand, length: int) -> Iterator[Segment]:
    """Yield the segments of groups that share control variates, of all that go on so long."""
    lines: dict[Line, dict[int, set[int]]] = defaultdict(dict)
    for (line, group), stops in demand.stops.items():
        if _in_one_job(line, length):
            lines[line][group] = stops
    for line, groups in lines.items():
        for first, last in cut(1, set().union(*groups.values()), length):
            longer = (group for group, stops in groups.items() if max(stops) >= last)
            yield Segment(line, tuple(longer), first, last)


def _in_one_job(line: Line, length: int) -> bool:
    """Whether groups need one another within a segment; one round reads those before it only."""
    return shares_control(line) and length > 1


def _groups_of_a_taught(line: Line) -> tuple[int, ...]:
    """Return the groups of a distilled line's segments: those that a distillation reaches."""
    return tuple(range(line.global_models)) if shares_control(line) else students(line)


def cut(first: int, stops: Iterable[int], length: int) -> list[tuple[int, int]]:
    """Cut rounds first..max(stops) after each of `stops` and each multiple of `length`."""
    lasts = sorted(stop for stop in stops if stop >= first)
    if not lasts:
        return []
    multiples = range(-(-first // length) * length, lasts[-1], length)
    ends = sorted({*lasts, *multiples})
    return list(zip([first, *(end + 1 for end in ends[:-1])], ends, strict=True))


def _ask(demand: _Demand, line: Line, rounds: int) -> None:
    """Note the rounds that a run of a line trains, in the lines that own them."""
    base = undistilled(line)
    fork = first_distillation(line)
    for group in range(line.global_models):
        demand.stops[base, group].add(_last_undistilled(line, group, rounds))
    if line.global_trainer is None or fork > rounds:
        return
    demand.taught[line].add(rounds)
    assert line.ensemble is not None, "checked by Line: a global trainer has an ensemble"
    reach = checkpoints(line.ensemble)
    for group, logits in product(range(line.global_models), artefacts.teaching_logits(line)):
        last = _last_undistilled(line, group, rounds)
        demand.logits[(base, group, *logits)].update(range(max(1, fork - reach + 1), last + 1))


def _last_undistilled(line: Line, group: int, rounds: int) -> int:
    """Return the last round of a group that no distillation reaches: see `lines.owner`."""
    if line.global_trainer is None:
        return rounds
    fork = first_distillation(line)
    if group in students(line):
        return min(fork, rounds)
    return min(fork + 1, rounds) if shares_control(line) else rounds


def _logits_segments(demand: _Demand, segments: list[Segment]) -> Iterator[LogitsSegment]:
    """Cut the rounds whose logits are wanted as the training of their members is cut."""
    by_group: dict[tuple[Line, int], list[Segment]] = defaultdict(list)
    for segment in segments:
        for group in segment.groups:
            by_group[segment.line, group].append(segment)
    for key, wanted in demand.logits.items():
        for segment in by_group[key[:2]]:
            rounds = tuple(sorted(wanted & set(range(segment.first, segment.last + 1))))
            if rounds:
                yield LogitsSegment(*key, rounds)


# --- files ----------------------------------------------------------------------------------------


def inputs(segment: Segment | LogitsSegment) -> list[str]:
    """Return what a segment reads from other jobs, beside data and settings."""
    return logits_models(segment) if isinstance(segment, LogitsSegment) else segment_inputs(segment)


def segment_inputs(segment: Segment) -> list[str]:
    """Return what a segment reads from other jobs, beside data and settings."""
    line = segment.line
    rounds = range(segment.first, segment.last + 1)
    paths = [path for group in segment.groups for path in _starts_from(segment, group)]
    own = {path for t in rounds for path in _own_reads(segment, t)}
    taught = (t for t in rounds if any(is_distilled(line, t, group) for group in segment.groups))
    teachers = _taught_from(segment, list(taught))
    tables = (artefacts.participation_table(line, t) for t in rounds)
    return list(dict.fromkeys([*paths, *tables, *(path for path in teachers if path not in own)]))


def _starts_from(segment: Segment, group: int) -> Iterator[str]:
    """Yield what the first training of a group in a segment, or a distillation before it, reads."""
    line, first = segment.line, segment.first
    rounds = range(first, segment.last + 1)
    trained = next((t for t in rounds if owner(line, t, group) == line), None)
    if trained != first and is_distilled(line, first, group):
        yield artefacts.aggregated_model(line, first, group)
    if trained is None:
        return
    if trained == first or not is_distilled(line, trained - 1, group):
        yield artefacts.global_model(line, trained - 1, group)
    made = {
        artefacts.round_state(line, trained - 1, other)
        for other in segment.groups
        if trained > first and owner(line, trained - 1, other) == line
    }
    yield from (path for path in artefacts.states_before(line, trained, group) if path not in made)


def segment_outputs(segment: Segment, kept: Kept) -> list[str]:
    """Return what other jobs may read of a segment, in the order in which it is made.

    The order matters: snakemake renews the times of outputs one after the other, and a file must
    not be older than what it was made from.
    """
    line = segment.line
    paths: list[str] = []
    for round in range(segment.first, segment.last + 1):
        own = [group for group in segment.groups if owner(line, round, group) == line]
        for group in own:
            if round in kept.updates:
                paths.extend(artefacts.updates(line, round, group))
            if round in kept.models:
                paths.append(artefacts.aggregated_model(line, round, group))
            if round in kept.participants:
                paths.append(artefacts.participants_table(line, round, group))
            if keeps_state(line) and round == segment.last:
                paths.append(artefacts.round_state(line, round, group))
        if line.global_trainer is not None:
            if round in kept.logits:
                paths.extend(
                    path for group in own for path in artefacts.spoken_logits(line, round, group)
                )
            if round in kept.models:
                taught = (group for group in segment.groups if is_distilled(line, round, group))
                paths.extend(artefacts.global_model(line, round, group) for group in taught)
    return paths


def _taught_from(segment: Segment, rounds: list[int]) -> Iterator[str]:
    """Yield what the distillations of rounds read; teachers of successive rounds share members."""
    line = segment.line
    if line.ensemble is not None:
        past = {t for round in rounds for t in artefacts.member_rounds(round, line.ensemble)}
        for round, group in product(sorted(past), range(line.global_models)):
            for kind in member_kinds(line.ensemble):
                yield artefacts.logits_file(line, round, group, kind, artefacts.public_id(line))
    for round in rounds:
        yield from artefacts.judged_logits(line, round)
        for group in students(line):
            yield from artefacts.fused_updates(line, round, group)


def _own_reads(segment: Segment, round: int) -> Iterator[str]:
    """Yield what a distilled segment makes of a round and teaches with itself."""
    for group in segment.groups:
        if segment.line.global_trainer and owner(segment.line, round, group) == segment.line:
            yield from artefacts.spoken_logits(segment.line, round, group)
            yield from artefacts.updates(segment.line, round, group)


def logits_models(segment: LogitsSegment) -> list[str]:
    """Return the models whose logits a segment computes."""
    line, group = segment.line, segment.group
    models = (artefacts.member_models(line, t, group, segment.members) for t in segment.rounds)
    return [path for read in models for path in read]


def logits_outputs(segment: LogitsSegment) -> list[str]:
    """Return the logits that a segment computes."""
    what = (segment.members, segment.images)
    return [artefacts.logits_file(segment.line, t, segment.group, *what) for t in segment.rounds]


# --- what is kept ---------------------------------------------------------------------------------


def rounds_kept(segment: Segment, keep: Keep, read: Collection[str]) -> Kept:
    """Return the rounds of a segment whose files stay, by kind.

    Parameters
    ----------
    keep : str
        ``all`` files stay; ``models``: all but the updates that no job reads; ``needed``: what some
        job reads, and the models of the last round.
    read : collection of str
        What jobs read, of `files_read`.
    """
    line, every = segment.line, tuple(range(segment.first, segment.last + 1))

    def of(files: Callable[[Line, int, int], Iterable[str]]) -> tuple[int, ...]:
        return tuple(
            round
            for round in every
            if any(path in read for group in segment.groups for path in files(line, round, group))
        )

    updates = every if keep == "all" else of(artefacts.updates)
    if keep != "needed":
        return Kept(updates, every, every, every)
    models = of(lambda *at: [artefacts.aggregated_model(*at), artefacts.global_model(*at)])
    participants = of(lambda *at: [artefacts.participants_table(*at)])
    logits = of(artefacts.spoken_logits)
    return Kept(updates, tuple(sorted({*models, segment.last})), participants, logits)


def files_read(runs: Iterable[Run], inputs: Iterable[Iterable[str]]) -> set[str]:
    """Return the files of rounds that some job reads.

    Parameters
    ----------
    inputs : iterable
        What each segment reads; the rest is read by evaluations of `runs`.
    """
    paths = set(chain.from_iterable(inputs))
    for run in runs:
        if isinstance(run.line, Line):
            paths.update(_evaluated(run.line, run.length))
    return paths


def _evaluated(line: Line, length: RunLength) -> Iterator[str]:
    """Yield the models and tables that an evaluation reads, or the logits of its ensemble."""
    for round in artefacts.evaluated_rounds(length.rounds, length.evaluate_every):
        for group in range(line.global_models):
            yield artefacts.participants_table(line, round, group)
        if isinstance(length.evaluate, GlobalModel):
            yield artefacts.global_model(line, round, 0)
        else:
            yield from _members(line, round, length.evaluate)


def _members(line: Line, round: int, ensemble: EnsembleTrainer) -> Iterator[str]:
    """Yield the models behind the members of an ensemble."""
    places = product(artefacts.member_rounds(round, ensemble), range(line.global_models))
    for (past, group), kind in product(places, member_kinds(ensemble)):
        yield from artefacts.member_models(line, past, group, kind)


# --- rules ----------------------------------------------------------------------------------------


def first_of_each(made: Iterable[Sequence[str]]) -> dict[str, str]:
    """Return, for each file of a job, the first file that this job makes.

    A job that reads many files of another one names the first of them as its input, which stands
    for the end of that job: snakemake looks up one file instead of a hundred, and among the outputs
    of a rule it searches from the first on.
    """
    return {path: paths[0] for paths in made for path in paths}


def options(segment: Segment | LogitsSegment, kept: Kept | None = None) -> str:
    """Write which rounds and groups a segment has, and what it keeps, as options of its command."""
    if isinstance(segment, LogitsSegment):
        what = f"--members {segment.members} --images {segment.images}"
        return f"--rounds {_words(segment.rounds)} --group {segment.group} {what}"
    text = f"--first {segment.first} --last {segment.last} --groups {_words(segment.groups)}"
    if kept is None:
        return text
    return text + "".join(
        f" --kept-{field.name} {_words(getattr(kept, field.name))}" for field in fields(kept)
    )


def _words(numbers: Iterable[int]) -> str:
    return " ".join(map(str, numbers))
