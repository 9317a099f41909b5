"""Files that still contain a client after an aggregator has forgotten it.

Forgetting makes one new aggregator and trains no model. Earlier files stay in place until they are
deleted (`fedstage forget --delete`).
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict
from fnmatch import fnmatchcase
from itertools import chain

from fedstage.experiments.catalogue import Catalogue, resolve_sound
from fedstage.experiments.library import experiment_names
from fedstage.experiments.traces import (
    Forgotten,
    Trace,
    folder_of,
    traces_in_data,
    traces_in_folder,
    what_it_has,
)
from fedstage.plan.folders import AnyLine
from fedstage.plan.one_shot_sharing import local_line
from fedstage.plan.results import RESULTS
from fedstage.plan.runs import Run
from fedstage.settings.data import Data
from fedstage.settings.lines import LocalLine
from fedstage.settings.one_shot import OneShotLine
from fedstage.settings.public import CoreSamples, Generated, HeldOut

#: Public samples that are of no data set of their own.
_OF_LINES = HeldOut | CoreSamples | Generated

#: Results that are made from metrics, models or partitions.
_PRESENTED = ("tables", "claims", "communication", "retention", "clients")


def forgets(catalogue: Catalogue, experiment: str, scale: str) -> bool:
    """Whether a run of an experiment forgets a client."""
    return any(_forgetful(catalogue, experiment, scale))


def traces_of(
    catalogue: Catalogue,
    experiment: str,
    scale: str,
    stored: Mapping[str, AnyLine] | None = None,
) -> list[dict[str, str | int]]:
    """Return the traces, for JSON, of all clients that runs of an experiment forget.

    They may be in files of any experiment, and of the lines that are `stored` by the paths of their
    folders, of which the configuration knows nothing any more.
    """
    names = experiment_names(catalogue.config, catalogue.folder)
    every = resolve_sound(catalogue.config, catalogue.folder, names, [experiment])
    known = {**(stored or {}), **every.folders}
    lines = {path: known[path] for path in sorted(known)}  # which have no order
    traces = [
        trace
        for line in _forgetful(catalogue, experiment, scale)
        for client in sorted(set(line.forget))
        for trace in _traces(every, lines, Forgotten(client, local_line(line)))
    ]
    return [asdict(trace) for trace in dict.fromkeys(traces)]


def _forgetful(catalogue: Catalogue, experiment: str, scale: str) -> list[OneShotLine]:
    lines = (one.line for run in catalogue.runs[experiment, scale] for one in run.trained())
    return [line for line in lines if isinstance(line, OneShotLine) and line.forget]


def _traces(catalogue: Catalogue, lines: Mapping[str, AnyLine], gone: Forgotten) -> list[Trace]:
    sets = dict.fromkeys(chain.from_iterable(map(_data_of, lines.values())))
    traces = [
        *(trace for data in sets for trace in traces_in_data(gone, data)),
        *(trace for path, line in lines.items() for trace in traces_in_folder(gone, path, line)),
    ]
    while later := [one for one in _started(gone, lines, traces) if one not in traces]:
        traces += later
    return [*traces, *_presented(catalogue, gone, traces)]


def _data_of(line: AnyLine) -> list[Data]:
    """Return the data sets that a line reads."""
    if isinstance(line, LocalLine) or isinstance(line.public, _OF_LINES):
        return [line.data]
    return [line.data, line.public]


def _started(
    gone: Forgotten, lines: Mapping[str, AnyLine], traces: Collection[Trace]
) -> Iterator[Trace]:
    """Yield the lines that start from a file with traces."""
    for path, line in lines.items():
        start = line.start
        if start is not None and any(is_among(start, one.files) for one in traces):
            yield Trace(gone.client, "goes on from a model with it", path)


def is_among(file: str, files: str) -> bool:
    """Whether a file is one of a pattern, or lies in the folder of that name."""
    return fnmatchcase(file, files) or file.startswith(f"{files}/")


def _presented(catalogue: Catalogue, gone: Forgotten, traces: Collection[Trace]) -> Iterator[Trace]:
    """Yield the results and choices of runs that have files with traces."""
    contains = "numbers of runs with it"
    for (experiment, scale), runs in sorted(catalogue.runs.items()):
        if any(_touched(run, gone, traces) for run in runs):
            files = [f"{RESULTS}/{kind}/{experiment}/{scale}.*" for kind in _PRESENTED]
            for pattern in (*files, f"{RESULTS}/figures/{experiment}/{scale}_*"):
                yield Trace(gone.client, contains, pattern)
    for name, run in sorted(catalogue.choices.items()):
        if _touched(run, gone, traces):
            yield Trace(gone.client, contains, f"{RESULTS}/choices/{name}")


def _touched(run: Run, gone: Forgotten, traces: Collection[Trace]) -> bool:
    """Whether a run, or one of its candidates or parts, has files with traces of a client."""
    folders = {one.files for one in traces}
    return any(
        what_it_has(gone, one.line) is not None or folder_of(one.line) in folders
        for one in run.trained()
    )
