"""Inputs and outputs of segments, and which of their files stay on disk."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, product

from fedstage.plan import artefacts, data_files, discriminators
from fedstage.plan.edges import Files, aggregation, as_lists, settings_files
from fedstage.plan.members import member_kinds, member_rounds
from fedstage.plan.participants import is_stale
from fedstage.plan.rounds import evaluated_rounds
from fedstage.plan.runs import Run
from fedstage.plan.segments import LogitsSegment, Segment, says
from fedstage.plan.sharing import (
    exchanges_logits,
    generates,
    is_distilled,
    is_taught,
    keeps_state,
    normalised,
    owner,
    speaks,
    update_owner,
)
from fedstage.plan.staleness import base_round
from fedstage.plan.students import (
    last_generator,
    learnt_from,
    read_by_students,
    selected_labels,
    student_start,
)
from fedstage.settings.config_file import Keep
from fedstage.settings.ensembles import GlobalModel
from fedstage.settings.groups import client_groups, group_slots
from fedstage.settings.lines import Line
from fedstage.settings.runs import RunLength


@dataclass(frozen=True)
class Kept:
    """The rounds of a segment whose files of each kind stay on disk.

    `models` are aggregated and distilled ones, always of the last round, too; `logits` are those
    that the segment computes for its own teachers.
    """

    updates: tuple[int, ...]
    models: tuple[int, ...]
    participants: tuple[int, ...]
    logits: tuple[int, ...]


def common_inputs(segment: Segment | LogitsSegment) -> Files:
    """Return the settings, data and public samples that a segment reads, by option of its rule."""
    line = segment.line
    common = settings_files(artefacts.line_folder(line), line.data)
    if isinstance(segment, LogitsSegment):
        return common | {"public": segment.public}
    public = artefacts.public_file(line) if speaks(line) else artefacts.aggregation_images(line)
    return common | {
        "data": data_files.data_file(line.data, "train"),
        "clients": data_files.clients_table(line),
        "public": public,
        "odds": discriminators.odds_files(line),
        "histogram": data_files.label_histogram(line) if generates(line) else [],
        "validation": artefacts.server_validation(line) or artefacts.judging_images(line) or [],
    }


def inputs(segment: Segment | LogitsSegment) -> list[str]:
    """Return the files that a segment reads from other jobs, beside data and settings."""
    return logits_models(segment) if isinstance(segment, LogitsSegment) else segment_inputs(segment)


def segment_inputs(segment: Segment) -> list[str]:
    """Return `inputs` of a segment that trains."""
    line = segment.line
    rounds = range(segment.first, segment.last + 1)
    if is_stale(line):
        paths = list(_stale_starts(segment))
    else:
        paths = [path for group in segment.groups for path in _starts_from(segment, group)]
    paths.extend(path for t in rounds for path in _heads_of_others(segment, t))
    paths.extend(path for t in rounds for path in _histories(segment, t))
    if trained_by(segment, segment.first):
        paths.extend(artefacts.said_before(line, segment.first))
    own = {path for t in rounds for path in _own_reads(segment, t)}
    taught = (t for t in rounds if any(is_distilled(line, t, group) for group in segment.groups))
    teachers = read_by_students(line, list(taught))
    tables = (data_files.participation_table(line, t) for t in rounds)
    return list(dict.fromkeys([*paths, *tables, *(path for path in teachers if path not in own)]))


def _starts_from(segment: Segment, group: int) -> Iterator[str]:
    """Yield the inputs of a group's first training in a segment, or of a distillation before it."""
    line, first = segment.line, segment.first
    if group not in client_groups(line):
        yield artefacts.global_model(line, first - 1, group)
        return
    rounds = range(first, segment.last + 1)
    trained = next((t for t in rounds if owner(line, t, group) == line), None)
    if trained != first and is_taught(line, first, group):
        distilled = is_distilled(line, first, group)
        start = student_start if distilled else artefacts.aggregated_model
        yield start(line, first, group)
    if trained is None:
        return
    if trained == first or not is_taught(line, trained - 1, group):
        yield artefacts.global_model(line, trained - 1, group)
    made = {
        artefacts.round_state(line, trained - 1, other)
        for other in segment.groups
        if trained > first and owner(line, trained - 1, other) == line
    }
    yield from (path for path in artefacts.states_before(line, trained, group) if path not in made)


def _stale_starts(segment: Segment) -> Iterator[str]:
    """Yield what trainings, averages and students of a stale line read from other segments.

    Participants may start from models of any round before, and an average may have updates of the
    undistilled line.
    """
    line, rounds = segment.line, tuple(range(segment.first, segment.last + 1))
    made = set(segment_outputs(segment, Kept(rounds, rounds, rounds, rounds)))
    for round in rounds:
        paths: list[str] = []
        for group in trained_by(segment, round):
            bases = (base_round(line, round, slot) for slot in own_slots(line, round, group))
            paths.extend(artefacts.global_model(line, base, group) for base in bases)
            read = as_lists(aggregation(line, round, group))
            for option in ("start", "updates", "bases", "state"):
                paths.extend(read.get(option, ()))
            made.add(artefacts.round_state(line, round, group))
        taught = (group for group in segment.groups if is_distilled(line, round, group))
        paths.extend(student_start(line, round, group) for group in taught)
        yield from (path for path in paths if path not in made)


def _histories(segment: Segment, round: int) -> Iterator[str]:
    """Yield the global models that participants of a round learn from, if others make them."""
    line, made = segment.line, range(segment.first, segment.last + 1)
    for group in trained_by(segment, round):
        own = _own(line, (artefacts.global_model(line, t, group) for t in made))
        for base in {base_round(line, round, slot): None for slot in own_slots(line, round, group)}:
            past = artefacts.history(line, base, group)
            yield from (path for path in past if path not in own)


def own_slots(line: Line, round: int, group: int) -> list[int]:
    """Return the slots of a group whose updates belong to this line."""
    slots = group_slots(line, group)
    return [slot for slot in slots if update_owner(line, round, group, slot) == line]


def _own_updates(line: Line, round: int, group: int) -> list[str]:
    return _own(line, artefacts.updates(line, round, group))


def _own(line: Line, paths: Iterable[str]) -> list[str]:
    """Return the files that belong to this line."""
    return [path for path in paths if path.startswith(f"{artefacts.line_folder(line)}/")]


def _heads_of_others(segment: Segment, round: int) -> Iterator[str]:
    """Yield the updates whose heads the server's model takes, if other segments make them."""
    line = segment.line
    for group in client_groups(line) if line.head_transfer else ():
        if owner(line, round, group) != line:
            yield from artefacts.updates(line, round, group)


def segment_outputs(segment: Segment, kept: Kept) -> list[str]:
    """Return the kept files of a segment, in the order in which they are made.

    The order matters: snakemake renews the times of outputs one after the other, and a file must
    not be older than its inputs.
    """
    line = segment.line
    paths: list[str] = []
    for round in range(segment.first, segment.last + 1):
        own = trained_by(segment, round)
        for group in own:
            if round in kept.updates:
                paths.extend(_own_updates(line, round, group))
            if round in kept.models:
                paths.append(artefacts.aggregated_model(line, round, group))
            if round in kept.participants:
                paths.append(artefacts.participants_table(line, round, group))
            if keeps_state(line) and round == segment.last:
                paths.append(artefacts.round_state(line, round, group))
        if (says(line, round) or exchanges_logits(line)) and round in kept.logits:
            for group in own:
                paths.extend(_own(line, artefacts.round_logits(line, round, group)))
        if round in kept.logits and 0 in segment.groups:
            paths.extend(selected_labels(line, round))
        if round in kept.models:
            if line.head_transfer:
                paths.append(artefacts.aggregated_model(line, round, 0))
            taught = (group for group in segment.groups if is_taught(line, round, group))
            paths.extend(artefacts.global_model(line, round, group) for group in taught)
    for group in segment.groups:
        paths.extend(last_generator(line, segment.first, segment.last, group))
    return paths


def trained_by(segment: Segment, round: int) -> list[int]:
    """Return the groups whose participants a segment trains in a round."""
    line = segment.line
    groups = (group for group in segment.groups if group in client_groups(line))
    return [group for group in groups if owner(line, round, group) == line]


def _own_reads(segment: Segment, round: int) -> Iterator[str]:
    """Yield the files of a round that a distilled segment makes and teaches with."""
    for group in trained_by(segment, round):
        if segment.line.global_trainer:
            yield from _own(segment.line, artefacts.round_logits(segment.line, round, group))
            yield from _own_updates(segment.line, round, group)
            yield artefacts.aggregated_model(segment.line, round, group)


def logits_models(segment: LogitsSegment) -> list[str]:
    """Return the models whose logits a segment computes."""
    line, group = segment.line, segment.group
    models = (artefacts.member_models(line, t, group, segment.members) for t in segment.rounds)
    return [path for read in models for path in read]


def logits_outputs(segment: LogitsSegment) -> list[str]:
    """Return the logits that a segment computes."""
    what = (segment.members, segment.images)
    return [artefacts.logits_file(segment.line, t, segment.group, *what) for t in segment.rounds]


def rounds_kept(segment: Segment, keep: Keep, read: Collection[str]) -> Kept:
    """Return the rounds of a segment whose files stay, by kind.

    By `keep` all files stay, or all but the updates that no job reads (``models``), or only the
    files that jobs `read` and the models of the last round (``needed``).
    """
    every = tuple(range(segment.first, segment.last + 1))

    def rounds_of(files: Callable[[Line, int, int], Iterable[str]]) -> tuple[int, ...]:
        places = product(every, segment.groups)
        found = {t for t, k in places if any(path in read for path in files(segment.line, t, k))}
        return tuple(sorted(found))

    updates = every if keep == "all" else rounds_of(_own_updates)
    if keep != "needed":
        return Kept(updates, every, every, every)
    models = rounds_of(lambda *at: [artefacts.aggregated_model(*at), artefacts.global_model(*at)])
    participants = rounds_of(lambda *at: [artefacts.participants_table(*at)])
    logits = rounds_of(learnt_from)
    return Kept(updates, tuple(sorted({*models, segment.last})), participants, logits)


def files_read(runs: Iterable[Run], inputs: Iterable[Iterable[str]]) -> set[str]:
    """Return the files of rounds that segments (their `inputs`) or evaluations of `runs` read."""
    paths = set(chain.from_iterable(inputs))
    for run in runs:
        if isinstance(run.line, Line):
            paths.update(_evaluated(normalised(run.line), run.length))
    return paths


def _evaluated(line: Line, length: RunLength) -> Iterator[str]:
    """Yield the tables that an evaluation reads, and its models or those of its ensemble."""
    for round in evaluated_rounds(length.rounds, length.evaluate_every):
        for group in client_groups(line):
            yield artefacts.participants_table(line, round, group)
        if isinstance(length.evaluate, GlobalModel):
            yield artefacts.global_model(line, round, 0)
            continue
        places = product(member_rounds(round, length.evaluate), client_groups(line))
        for (past, group), kind in product(places, member_kinds(length.evaluate)):
            yield from artefacts.member_models(line, past, group, kind)


def first_of_each(made: Iterable[Sequence[str]]) -> dict[str, str]:
    """Return, for each file of a job, the first file that this job makes.

    A job that reads many files of another one names only the first of them as its input: snakemake
    looks up one file instead of a hundred, and searches the outputs of a rule from the first on.
    """
    return {path: paths[0] for paths in made for path in paths}
