"""Which runs a command line is about, and the participants that their rounds have."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Literal

from fedstage.experiments.catalogue import Catalogue, split_target
from fedstage.plan.runs import Run
from fedstage.plan.sharing import (
    aggregator_id,
    cohorts,
    line_id,
    local_id,
    local_line,
    normalised,
    student_id,
    undistilled,
)
from fedstage.settings.lines import Line, LocalLine
from fedstage.settings.one_shot import OneShotLine


def asked_runs(catalogue: Catalogue, arguments: Iterable[str]) -> list[Run]:
    """Return the runs that a command line is about, and those that share rounds with them.

    A run is asked for where its experiment and scale, or its line's id, stands in the arguments: a
    job on another machine names its files or its rule, and these name the line. The configured
    targets are always asked for. What shares rounds decides with them how these are cut into
    segments and which of their files stay; so every process must see the same of it.
    """
    text = " ".join(arguments)
    every = [
        (key, one)
        for key, runs in catalogue.runs.items()
        for run in runs
        for one in run.evaluated()
    ]
    shared = {
        _shared(part.line)
        for key, run in every
        if _is_asked(catalogue, key, run, text)
        for part in run.chain()
    }
    return [part for _, run in every for part in run.chain() if _shared(part.line) in shared]


def cohorts_of(
    runs: Iterable[Run], size: int | Literal["all"]
) -> dict[tuple[int, tuple[int, ...]], list[str]]:
    """Return each cohort, group and slots, with the ids of the lines that have it.

    Parameters
    ----------
    size : int or "all"
        At most so many participants make a cohort.
    """
    found: dict[tuple[int, tuple[int, ...]], list[str]] = defaultdict(list)
    lines = [run.line for run in runs if isinstance(run.line, Line)]
    for line in dict.fromkeys(kind(line) for line in lines for kind in (normalised, undistilled)):
        for group in range(line.global_models):
            for slots in cohorts(line, group, None if size == "all" else size):
                found[group, slots].append(line_id(line))
    return dict(found)


def _is_asked(catalogue: Catalogue, key: tuple[str, str], run: Run, text: str) -> bool:
    if key in {split_target(target) for target in catalogue.config.targets}:
        return True
    ids = (name for part in run.chain() for name in _ids(part.line))
    marks = ("{}/{}".format(*key), "experiment={},scale={}".format(*key), *ids)
    return any(mark in text for mark in marks)


def _shared(line: Line | LocalLine | OneShotLine) -> Line | LocalLine | OneShotLine:
    """Return the line whose rounds a run may share with others."""
    return undistilled(line) if isinstance(line, Line) else line


def _ids(line: Line | LocalLine | OneShotLine) -> list[str]:
    if isinstance(line, LocalLine):
        return [local_id(line)]
    if isinstance(line, OneShotLine):
        taught = [student_id(line)] if line.distillation is not None else []
        return [*taught, aggregator_id(line), local_id(local_line(line))]
    return [line_id(line), line_id(undistilled(line))]
