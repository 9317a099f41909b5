"""What ``fedstage run STAGE FILE NAME=VALUE ...`` does: a job, from its words.

FILE is the recipe of a folder, and the names and values are a place, such as ``round=3 group=0``.
The graph names what the job reads and makes. For a stage of results FILE describes an experiment.
One file because this is a job from its words to its record.
"""

import os
import shlex
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, get_type_hints

from fedstage.errors import FedstageError
from fedstage.execution.imported import planned_source
from fedstage.execution.notes import QUIET, Notices, Timings, noticing, process_age
from fedstage.plan.graph import Job, Stage, interned, listed
from fedstage.plan.results import (
    FILES,
    FORMATS,
    RESULTS,
    chosen_file,
    chosen_metrics_file,
    description_file,
    result_files,
)
from fedstage.plan.segments import LogitsSegment, Segment
from fedstage.plan.source import Source, source_of_job
from fedstage.plan.stages import (
    CHOICE,
    GRAPH,
    LOGITS_SEGMENT,
    SEGMENT,
    STAGES,
    given_files,
)
from fedstage.settings.plugins import describe_error, line_of_plugin
from fedstage.settings.recipes import Recipe
from fedstage.stages import Seconds, find_stage, paths_of, run_job
from fedstage.storage.files import WRITTEN_FILES, load_json, save_json
from fedstage.storage.provenance import (
    ERROR,
    PARTS,
    SUFFIX,
    WRITTEN,
    commit,
    digests,
    machine,
    versions,
)
from fedstage.storage.yaml_files import load_project_plugins, read_recipe

_PACKAGE = Path(__file__).parents[1]

Files = Mapping[str, str | Sequence[str]]
#: How a value of a place is read.
Kind = Callable[[str], Any]


@dataclass(frozen=True)
class Work:
    """A job: its files, its place, the source of what it computes, and the call that does it."""

    stage: str
    record: str
    inputs: Files
    outputs: Files
    sources: Sequence[Source]
    run: Callable[[], Seconds | None]
    place: Mapping[str, Any] = field(default_factory=dict)


def job_of(name: str, file: Path, words: Sequence[str]) -> Work:
    """Return a job by its words.

    Raises
    ------
    FedstageError
        If there is no such stage or place, or the file is missing or damaged.
    """
    if name not in STAGES:
        raise FedstageError(f"stage = {name!r}: no such stage; `fedstage list stages` shows all")
    stage = STAGES[name]
    if isinstance(stage, Stage):
        config = interned(read_recipe(file, stage.folder.kind))  # it is in its simplest form
        # In some folders another stage has the name.
        stage = next((one for one in GRAPH if one.name == name and one.used(config)), stage)
        hints = get_type_hints(stage.inputs)
        kinds = {key: hints[key if key in hints else f"{key}_"] for key in stage.place}
        return of_graph(stage.job(config, *_place(name, words, kinds).values()))
    if stage is SEGMENT:
        kinds = {"first": int, "last": int, "groups": _numbers, "kept": _names}
        return _of_segment(file, Segment, _place(name, words, kinds, optional="kept"))
    if stage is LOGITS_SEGMENT:
        kinds = {"rounds": _numbers, "group": int, "members": str, "images": str}
        return _of_segment(file, LogitsSegment, _place(name, words, kinds))
    return _of_choice(file) if stage is CHOICE else _of_results(name, file, words)


def _place(
    stage: str, words: Sequence[str], kinds: Mapping[str, Kind], optional: str = ""
) -> dict[str, Any]:
    """Return the values of a place, in the order of `kinds`."""
    values = {key: value for key, _, value in (word.partition("=") for word in words)}
    if not kinds.keys() - {optional} <= values.keys() <= kinds.keys():
        needed = " ".join(f"{key}=..." for key in kinds if key != optional) or "nothing more"
        raise FedstageError(f"{' '.join(words) or 'no place'}: {stage} must be given {needed}")
    try:
        return {key: kinds[key](values[key]) for key in kinds if key in values}
    except ValueError as error:
        raise FedstageError(f"{' '.join(words)}: {error}") from error


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(",")))


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


def of_graph(job: Job) -> Work:
    """Return a job of the graph."""
    return Work(
        job.stage.name, record_of(job), job.inputs, job.files, [source_of_job(job)],
        partial(run_job, job), job.at,
    )  # fmt: skip


def record_of(job: Job) -> str:
    """Return the record of a job: named after its folder, and its main file if it has a place."""
    path = PurePosixPath(next(iter(job.files.values())))
    below = path.with_suffix("").parts[2:] if job.place else path.parts[2:-1]
    return f"{RESULTS}/logs/{job.stage.name}/{'/'.join(below)}{SUFFIX}"


def _of_segment(file: Path, kind: type[Segment | LogitsSegment], place: Mapping[str, Any]) -> Work:
    recipe, where = read_recipe(file, Recipe), dict(place)
    kept = {"kept": where.pop("kept")} if "kept" in place else {}
    part = kind(recipe, **where)
    run = partial(find_stage(kind.stage), part, **kept)
    record = f"{RESULTS}/logs/{kind.stage}/{file.parent.name}/{part.name}{SUFFIX}"
    sources = list(dict.fromkeys(map(source_of_job, part.jobs())))
    return Work(kind.stage, record, {"recipe": str(file)}, {}, sources, run, place)


def _of_results(name: str, file: Path, words: Sequence[str]) -> Work:
    described = load_json(file)
    at = (described["experiment"], described["scale"])
    kinds: dict[str, Kind] = {"shown": str, "formats": _names} if name in FORMATS else {}
    place = _place(name, words, kinds, optional="formats")
    shown, formats = place.get("shown", ""), place.get("formats", ())
    described |= load_json(description_file("results").format(experiment=at[0], scale=at[1]))
    given = {"runs": str(file), **given_files(name, described, shown)}
    outputs: dict[str, str | list[str]] = {"files": result_files(name, *at, shown, formats)}
    if name not in FORMATS:
        outputs = dict(zip(FILES[name], listed(outputs["files"]), strict=True))
    function = find_stage(name)
    paths: dict[str, Any] = {key: paths_of(files) for key, files in (given | outputs).items()}
    known = {"shown": shown, **paths}
    arguments = {key: known[key] for key in get_type_hints(function) if key in known}
    record = ".".join((f"{RESULTS}/logs/{name}/{'/'.join(at)}", *filter(None, [shown]), *formats))
    run = partial(function, **arguments)
    inputs = given | files_of_runs(name, described, shown)
    return Work(name, f"{record}{SUFFIX}", inputs, outputs, [Source(name)], run, place)


#: The kinds of files of runs that a stage of results reads, by what it shows.
_OF_RUNS = {
    ("scores", ""): ("metrics", "over_rounds", "retention", "clients"),
    ("costs", ""): ("metrics",),
    ("table", "clients"): ("info",),
    ("figure", "partition"): ("partition", "info"),
    ("report", ""): ("partition", "info"),
}


def files_of_runs(stage: str, described: Mapping[str, Any], shown: str) -> dict[str, list[str]]:
    """Return the files of runs that a stage of results reads, by kind, as its rule names them.

    Any may ask which of its candidates a run has chosen.
    """
    kinds = ["chosen", *_OF_RUNS.get((stage, shown), ())]
    if stage == "scores" and described.get("traffic"):
        kinds.append("validation")
    runs = described["runs"]
    found = {kind: [file for run in runs for file in listed(run.get(kind))] for kind in kinds}
    return {kind: list(dict.fromkeys(files)) for kind, files in found.items() if files}


def _of_choice(file: Path) -> Work:
    described, choice = load_json(file), file.name.partition(".choice.json")[0]
    outputs = {"output": chosen_metrics_file(choice), "chosen": chosen_file(choice)}
    read = {key: described[key] for key in ("validation", "metrics")}
    paths = {key: paths_of(files) for key, files in (read | outputs).items()}
    run = partial(find_stage("choice"), values=described["values"], **paths)
    record, inputs = f"{RESULTS}/logs/choice/{choice}{SUFFIX}", {"description": str(file), **read}
    return Work("choice", record, inputs, outputs, [Source("choice")], run)


# --- running --------------------------------------------------------------------------------------


def run(stage: str, file: str, *words: str, started: float | None = None) -> int:
    """Run a job by its words, and write its record. Return its exit code.

    `started` is the start of the command on the clock of `time.perf_counter`, by default the start
    of this process.

    A `FedstageError`, or a file that cannot be opened, ends in one line, which is shown and
    recorded; for any other error the job's record has the traceback as well.
    """
    if started is None:
        started = time.perf_counter() - process_age()
    command = shlex.join(["fedstage", "run", stage, file, *words])
    record: Path | None = None
    timings = Timings(startup=time.perf_counter() - started)
    since = time.time_ns() - int((time.perf_counter() - started) * 1e9)
    try:
        load_project_plugins()
        job = job_of(stage, Path(file), words)
        record = Path(job.record)
        before = len(WRITTEN_FILES)
        with noticing(stage, sys.stderr) as notices:
            source = planned_source(job.sources, since)
            parts = job.run()
            planned_source(job.sources, since)
        written = WRITTEN_FILES[before:]
        write_record(job, command, source, timings.finish(), parts, written, notices)
    except (FedstageError, OSError) as error:
        told = "".join(f"fedstage {stage}: {line}\n" for line in str(error).splitlines())
        return fail(record, command, told)
    except Exception as error:  # a bug, here or in a plugin
        if record is None:
            raise
        told = f"fedstage {stage}: {_of_bug(error)}\n"
        return fail(record, command, told, traceback.format_exc())
    return 0


def fail(record: Path | None, command: str, error: str, details: str = "") -> int:
    """Write the error of a job into its record, and print it if that is not done, or not quiet."""
    recorded = record is not None and write_failure(record, command, error, details)
    if not recorded or QUIET not in os.environ:
        sys.stderr.write(error)
    return 1


def _of_bug(error: Exception) -> str:
    """Return the last line of a plugin, or else of this package, behind an error, and the error."""
    return f"{line_of_plugin(error) or _line_of_package(error)}{describe_error(error)}"


def _line_of_package(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if Path(frame.filename).is_relative_to(_PACKAGE)]
    if not own:
        return ""
    return f"{Path(own[-1].filename).relative_to(_PACKAGE.parent)}, line {own[-1].lineno}: "


# --- records --------------------------------------------------------------------------------------


def write_record(
    job: Work,
    command: str,
    source: Mapping[str, str] | None,
    figures: Mapping[str, float],
    parts: Seconds | None,
    written: Iterable[str],
    notices: Notices,
) -> None:
    """Write the record of a job that has succeeded.

    `source` has the digests of its modules, `figures` the seconds and memory from
    `fedstage.execution.notes`, `parts` the seconds of several jobs that are done in one,
    `written` all files that it has written, and `notices` the lines that it has printed, with what
    they say of distillations.
    """
    inputs = {name: files for name, files in job.inputs.items() if files}
    named = {path for files in job.outputs.values() for path in listed(files)}
    record: dict[str, Any] = {
        "stage": job.stage,
        "command": command,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "source": source,
        "versions": versions(),
        "commit": commit(),
        "machine": machine(),
        **figures,
        "options": dict(job.place),
        "inputs": {name: digests(files) for name, files in inputs.items()},
        "outputs": {name: digests(files) for name, files in job.outputs.items()},
    }
    if (raw := job.inputs.get("raw")) and Path(str(raw)).is_file():
        record["raw"] = {"files": load_json(Path(str(raw)))}
    if parts:
        record[PARTS] = {file: round(seconds, 3) for file, seconds in parts.items()}
    others = digests([path for path in written if path not in named])  # a segment's files
    if left := {path: digest for path, digest in others.items() if digest}:
        record[WRITTEN] = left
    if lines := notices.getvalue().splitlines():
        record["notices"] = lines
    if notices.distilled:
        record["distilled"] = notices.distilled
    save_json(job.record, record)


def write_failure(record: Path, command: str, error: str, traceback: str = "") -> bool:
    """Write the record of a job that has failed: its error, and of a bug the traceback.

    Returns whether it was written: the disk may be full.
    """
    found = {"command": command, ERROR: error.splitlines(), "traceback": traceback.splitlines()}
    try:
        save_json(record, {key: value for key, value in found.items() if value})
    except FedstageError:
        return False
    return True
