"""Stage `segment`: several rounds of a group, of all students or of all groups, in one process."""

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from fedstage.plan import artefacts, edges
from fedstage.plan.participants import is_stale
from fedstage.plan.segment_files import own_slots
from fedstage.plan.segments import says
from fedstage.plan.sharing import (
    caches_labels,
    exchanges_features,
    exchanges_logits,
    generates,
    is_distilled,
    keeps_state,
    logits_owner,
    normalised,
    owner,
    takes_head,
)
from fedstage.plan.staleness import base_round
from fedstage.plan.students import (
    generator_file,
    last_generator,
    learnt_from,
    rounds_of_models,
    selected_labels,
)
from fedstage.settings.groups import client_groups, group_slots
from fedstage.settings.lines import Line
from fedstage.stages import Seconds, call
from fedstage.storage.yaml_files import read_line


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
) -> Seconds:
    """Call the stages of rounds `first` to `last` of `groups`, in the order of the DAG.

    It reads and writes the same files as single jobs, under the names of `fedstage.plan.artefacts`.
    Only the last round's state stays.

    Parameters
    ----------
    groups : list of int
        One group of an undistilled line, or all students of a distilled one; all groups with shared
        control variates, or exchanged features.
    kept_updates, kept_models, kept_participants, kept_logits : list of int, optional
        The rounds whose updates, models, tables of participants and logits for teachers stay on
        disk; all by default.

    Returns
    -------
    dict of str to float
        The seconds of each job that a DAG of single jobs would have.
    """
    settings, seconds = normalised(read_line(line, Line)), Seconds()
    # A later participant may start from any of a stale line's models.
    read_for = last - first + 1 if is_stale(settings) else rounds_of_models(settings)
    for round in range(first, last + 1):
        trained = (group for group in groups if group in client_groups(settings))
        owned = [group for group in trained if owner(settings, round, group) == settings]
        for group in owned:
            seconds |= _train(settings, round, group)
        if settings.head_transfer:
            seconds |= _transfer_heads(
                settings, round, 0, artefacts.aggregated_model(settings, round, 0)
            )
        if says(settings, round) or exchanges_logits(settings):
            for group in owned:
                seconds |= _compute_round_logits(settings, round, group)
        if caches_labels(settings) and owned:
            seconds |= _cache_labels(settings, round, owned[-1])
        if selected := selected_labels(settings, round):
            chosen = edges.selected_labels(settings, round, 0)
            seconds |= call("selected_labels", chosen | {"output": selected[0]}, round=round)
        for group in groups:
            if is_distilled(settings, round, group):
                seconds |= _distil(settings, round, group)
                for path in last_generator(settings, first, round - 1, group):
                    Path(path).unlink()
        if exchanges_features(settings):
            seconds |= _train_on_features(settings, round, 0)
        for group in groups:
            if takes_head(settings, group):
                output = artefacts.global_model(settings, round, group)
                seconds |= _transfer_heads(settings, round, group, output)
        _drop(settings, round, groups, kept_updates, artefacts.updates)
        if round > first:
            _drop(settings, round - 1, groups, [], lambda *at: [artefacts.round_state(*at)])
        if round - read_for >= first:
            _drop(settings, round - read_for, groups, kept_models, _models)
    for round in range(first, last + 1):
        if last - read_for < round < last:
            _drop(settings, round, groups, kept_models, _models)
        _drop(settings, round, groups, kept_participants, _tables)
        _drop(settings, round, groups, kept_logits, learnt_from)
    return seconds


def _train(settings: Line, round: int, group: int) -> Seconds:
    """Train the participants of a group and aggregate their updates."""
    at = (settings, round, group)
    updates = dict(zip(group_slots(settings, group), artefacts.updates(*at), strict=True))
    by_base: dict[int, list[int]] = defaultdict(list)
    for slot in own_slots(*at):
        by_base[base_round(settings, round, slot)].append(slot)
    seconds = Seconds()
    for slots in by_base.values():
        seconds |= call(
            "local_training",
            edges.local_training(*at, slots[0]) | {"outputs": [updates[slot] for slot in slots]},
            round=round,
            group=group,
            slots=slots,
        )
    outputs: edges.Files = {
        "output": artefacts.aggregated_model(*at),
        "participants": artefacts.participants_table(*at),
    }
    if keeps_state(settings):
        outputs["new_state"] = artefacts.round_state(*at)
    return seconds | call("aggregation", edges.aggregation(*at) | outputs)


def _distil(settings: Line, round: int, group: int) -> Seconds:
    files = edges.distillation(settings, round, group)
    outputs: edges.Files = {"output": artefacts.global_model(settings, round, group)}
    if generates(settings):
        outputs["new_generator"] = generator_file(settings, round, group)
    return call("distillation", files | outputs, round=round, group=group)


def _train_on_features(settings: Line, round: int, group: int) -> Seconds:
    output = artefacts.global_model(settings, round, group)
    return call(
        "feature_training",
        edges.feature_training(settings, round, group) | {"output": output},
        round=round,
        group=group,
    )


def _cache_labels(settings: Line, round: int, group: int) -> Seconds:
    (output,) = artefacts.cached_labels(settings, round)
    files = edges.cached_labels(settings, round, group) | {"output": output}
    return call("cached_labels", files, round=round)


def _transfer_heads(settings: Line, round: int, group: int, output: str) -> Seconds:
    files = edges.head_transfer(settings, round, group) | {"output": output}
    return call("head_transfer", files, round=round, group=group)


def _compute_round_logits(settings: Line, round: int, group: int) -> Seconds:
    """Compute the logits of a round and group that distillations read, if the line owns them."""
    seconds = Seconds()
    for members, images, _ in artefacts.teaching_logits(settings):
        if logits_owner(settings, round, group, members) != settings:
            continue
        at = (settings, round, group, members, images)
        files = edges.logits(*at) | {"output": artefacts.logits_file(*at)}
        seconds |= call("logits", files, members=members)
    return seconds


def _drop(
    settings: Line,
    round: int,
    groups: list[int],
    kept: list[int] | None,
    files: Callable[[Line, int, int], list[str]],
) -> None:
    """Delete this line's own files of a round, unless the round is kept."""
    if kept is None or round in kept:
        return
    for group in groups:
        for path in map(Path, files(settings, round, group)):
            if path.is_relative_to(artefacts.line_folder(settings)):
                path.unlink(missing_ok=True)


def _tables(line: Line, round: int, group: int) -> list[str]:
    return [artefacts.participants_table(line, round, group)]


def _models(line: Line, round: int, group: int) -> list[str]:
    """Return the models of a round and group; without participants it may have no average."""
    at = (line, round, group)
    models = [artefacts.global_model(*at)]
    if group in client_groups(line) or line.head_transfer:
        models.append(artefacts.aggregated_model(*at))
    # A server's model that learns nothing in a round is that of an earlier one.
    return [path for path in models if f"/round_{round:04d}/" in path]
