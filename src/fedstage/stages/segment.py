"""Stage `segment`: rounds first..last of a group, all students or all groups, in one process."""

from collections.abc import Callable
from pathlib import Path

from fedstage.data.samples import read_line
from fedstage.plan import artefacts
from fedstage.plan.sharing import group_slots, is_distilled, keeps_state, normalised, owner
from fedstage.settings.lines import Line
from fedstage.stages.aggregation import aggregation
from fedstage.stages.cohort import cohort
from fedstage.stages.distillation import distillation
from fedstage.stages.logits import logits_of_round


def segment(
    *,
    line: Path,
    first: int,
    last: int,
    groups: list[int],
    kept_updates: list[int] | None = None,
    kept_models: list[int] | None = None,
    kept_participants: list[int] | None = None,
    kept_logits: list[int] | None = None,
) -> None:
    """Call the stages of rounds `first` to `last` of `groups`, in the order of the DAG.

    Reads and writes the same files as jobs of a participant each would, where `fedstage.plan.artefacts` says
    that they are. Of round state only that of the last round stays.

    Parameters
    ----------
    groups : list of int
        One group of an undistilled line, or all students of a distilled one; with shared control
        variates all groups.
    kept_updates, kept_models, kept_participants, kept_logits : list of int, optional
        The rounds whose updates, models, tables of participants and logits for teachers stay on
        disk; all by default.
    """
    settings = normalised(read_line(line, Line))
    for round in range(first, last + 1):
        owned = [group for group in groups if owner(settings, round, group) == settings]
        for group in owned:
            train_group(line, settings, round, group)
        taught = [group for group in groups if is_distilled(settings, round, group)]
        if taught:
            for group in owned:
                speak(line, settings, round, group)
        for group in taught:
            teach(line, settings, round, group)
        _drop(settings, round, groups, kept_updates, artefacts.updates)
        if round > first:
            _drop(settings, round - 1, groups, kept_models, _models)
            _drop(settings, round - 1, groups, [], lambda *at: [artefacts.round_state(*at)])
    for round in range(first, last + 1):
        _drop(settings, round, groups, kept_participants, _tables)
        _drop(settings, round, groups, kept_logits, artefacts.spoken_logits)


def _drop(
    settings: Line,
    round: int,
    groups: list[int],
    kept: list[int] | None,
    files: Callable[[Line, int, int], list[str]],
) -> None:
    """Delete files of a round, unless it is one of those kept; only what stands under this line."""
    if kept is None or round in kept:
        return
    for group in groups:
        for path in map(Path, files(settings, round, group)):
            if path.is_relative_to(artefacts.line_folder(settings)):
                path.unlink(missing_ok=True)


def _tables(line: Line, round: int, group: int) -> list[str]:
    return [artefacts.participants_table(line, round, group)]


def _models(line: Line, round: int, group: int) -> list[str]:
    return [
        artefacts.aggregated_model(line, round, group),
        artefacts.global_model(line, round, group),
    ]


def train_group(line: Path, settings: Line, round: int, group: int) -> None:
    """Train the participants of a group and aggregate their updates."""
    info = Path(artefacts.data_file(settings.data, "info"))
    start = Path(artefacts.global_model(settings, round - 1, group))
    before = [Path(path) for path in artefacts.own_state_before(settings, round, group)]
    public = [Path(path) for path in artefacts.statistics_images(settings)]
    updates = [Path(path) for path in artefacts.updates(settings, round, group)]
    cohort(
        line=line,
        round=round,
        group=group,
        slots=list(group_slots(settings, group)),
        data=Path(artefacts.data_file(settings.data, "train")),
        info=info,
        clients=Path(artefacts.clients_table(settings)),
        participation=Path(artefacts.participation_table(settings, round)),
        start=start,
        state=[Path(path) for path in artefacts.states_before(settings, round, group)],
        outputs=updates,
    )
    state = Path(artefacts.round_state(settings, round, group))
    aggregation(
        line=line,
        info=info,
        start=start,
        updates=updates,
        state=next(iter(before), None),
        public=next(iter(public), None),
        output=Path(artefacts.aggregated_model(settings, round, group)),
        participants=Path(artefacts.participants_table(settings, round, group)),
        new_state=state if keeps_state(settings) else None,
    )


def speak(line: Path, settings: Line, round: int, group: int) -> None:
    """Compute what the members of a round and group say, wherever distillations read it."""
    for members, images, data in artefacts.teaching_logits(settings):
        logits_of_round(line, settings, round, group, members, images, Path(data))


def teach(line: Path, settings: Line, round: int, group: int) -> None:
    """Distil the round's teacher into a student."""
    validation = artefacts.server_validation(settings)
    distillation(
        line=line,
        start=Path(artefacts.aggregated_model(settings, round, group)),
        logits=_paths(artefacts.teacher_logits(settings, round)),
        judged=_paths(artefacts.judged_logits(settings, round)),
        updates=_paths(artefacts.fused_updates(settings, round, group)),
        public=Path(artefacts.public_file(settings)),
        server_validation=Path(validation) if validation else None,
        info=Path(artefacts.data_file(settings.data, "info")),
        output=Path(artefacts.global_model(settings, round, group)),
    )


def _paths(names: list[str]) -> list[Path]:
    return [Path(name) for name in names]
