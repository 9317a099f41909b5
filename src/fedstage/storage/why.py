"""``fedstage why FILE``: the settings, files and source that an artefact was made from."""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from fedstage.errors import FedstageError
from fedstage.plan.graph import Job, listed
from fedstage.plan.results import RESULTS
from fedstage.plan.source import changed_files, digest_now
from fedstage.settings.data import DataOption
from fedstage.settings.data_sets import DataSet
from fedstage.settings.validation import as_typed
from fedstage.storage.files import load_json
from fedstage.storage.provenance import SUFFIX, content_digest, listed_files
from fedstage.storage.raw_files import Contents, raw_of_job
from fedstage.storage.records import (
    Artefact,
    by_path,
    find_artefact,
    find_round_job,
)
from fedstage.storage.yaml_files import load_yaml, read_recipe

# --- raw files that have changed ------------------------------------------------------------------

UNCHANGED = ", unchanged"
#: Settings that name a data set; `public` may also name something else.
_KEYS = ("data", "public")
_RECIPE, _RUNS = "recipe.yaml", ".runs.json"


class Changes(NamedTuple):
    """The raw files of a data set: their folder, and a pair (what became of it, name) for each."""

    data: str
    folder: Path
    files: list[tuple[str, str]]


def raw_changes(root: Path, files: Iterable[str], folder: Path | None) -> Iterator[Changes]:
    """Yield the raw files of each data set that `files` below a working folder belong to.

    They are looked for in the data folder that a run would read: the one in ``config.yaml``, or
    `folder`, or else the one from which the job read them.
    """
    found = (re.match(rf"{RESULTS}/data/([^/]+)/", file) for file in files)
    for data in dict.fromkeys(match[1] for match in found if match):
        path = root / RESULTS / "logs" / "dataset" / f"{data}{SUFFIX}"
        try:
            job = load_json(path) if path.is_file() else {}
        except FedstageError as error:
            yield Changes(data, path.parent, [("its record is damaged, left out", str(error))])
            continue
        then = job.get("raw", {"folder": None, "files": {}})
        place = _configured(root) or folder or then["folder"]
        recipe = root / RESULTS / "data" / data / _RECIPE
        if not (job and place is not None and recipe.is_file()):
            continue
        try:
            settings = read_recipe(recipe, DataOption).data
        except FedstageError as error:
            yield Changes(data, recipe.parent, [("its recipe is damaged, left out", str(error))])
            continue
        pairs = _compare_raw(settings, then["files"], Path(place))
        yield Changes(data, Path(place), list(pairs))


def _compare_raw(settings: DataSet, then: Contents, folder: Path) -> Iterator[tuple[str, str]]:
    files = raw_of_job(settings, folder).get("raw", {}).get("files", {})
    if then and not files:
        yield "not there now, so the result stays", f"all {len(then)}"
        return
    for name in sorted({*then, *files}):
        digest = files.get(name, "gone")
        if name not in then:
            yield f"{digest}, added", name
        else:
            same = digest == then[name]
            yield (f"{digest}{UNCHANGED}" if same else f"{digest}, was {then[name]}"), name


def _configured(root: Path) -> Path | None:
    """Return the data folder of a working folder's configuration, if it names one."""
    path = root / "config.yaml"
    try:
        folder = load_yaml(path).get("data_folder") if path.is_file() else None
    except FedstageError:
        return None
    return root / folder if isinstance(folder, str) else None


def data_behind(root: Path, inputs: Iterable[str]) -> list[str]:
    """Return the files of the data sets that are named by recipes and runs files among `inputs`.

    All names are relative to a working folder. Recipes and runs files that are gone are skipped.
    """
    found = [data for name in inputs for data in _named(root / name)]
    return [file for file, settings in _made(root) if settings in found]


def _named(path: Path) -> Iterator[Any]:
    """Yield the settings of data sets in a recipe or a runs file; of other files, nothing."""
    if not path.is_file():
        return
    if path.name == _RECIPE:
        yield from _below(load_yaml(path))
    elif path.name.endswith(_RUNS):
        yield from _below(load_json(path))


def _below(value: Any) -> Iterator[Any]:
    """Yield the settings of data sets, however deep in a mapping or list."""
    if isinstance(value, dict):
        yield from (value[key] for key in _KEYS if key in value)
        value = value.values()
    if not isinstance(value, str | int | float | None):
        for one in value:
            yield from _below(one)


def _made(root: Path) -> Iterator[tuple[str, Any]]:
    """Yield a file of each data set that has been made, and its settings."""
    for path in sorted((root / RESULTS / "data").glob(f"*/{_RECIPE}")):
        for settings in _below(load_yaml(path)):
            yield f"{RESULTS}/data/{path.parent.name}/info.json", settings


# --- a file: its job, and what has changed since --------------------------------------------------

#: How many unchanged files of an option are listed.
SHOWN = 8


def why(path: Path, folder: Path | None = None) -> str:
    """Describe where a file below `results`, there or gone, came from.

    FedstageError if there is no record.

    `folder` is the data folder, unless the working folder's configuration names one.
    """
    artefact = find_artefact(path)
    lines = [
        artefact.name,
        *_table(facts_of(artefact)),
        *_section("settings", settings_of(artefact)),
        *_section("place", artefact.job["options"]),
        "inputs",
        *files_read(artefact),
        *_raw_files(artefact, folder),
        *_damaged(artefact),
        *_remedy(artefact),
    ]
    return "\n".join(lines)


def changes_of_source(job: Mapping[str, Any]) -> list[str]:
    """Return the files of a job's source, as its record has it, whose code has changed since."""
    then = job["source"] or {}
    return changed_files(then, {part: digest_now(part) for part in then})


def facts_of(artefact: Artefact) -> Iterator[tuple[str, str]]:
    """Yield facts about the job from its record, and what has changed since: names and texts."""
    job = artefact.job
    own = _job_of_segment(artefact)
    within = f", for {own.stage.name}" if own else ""
    yield "made", f"{job['made']} by stage {job['stage']}{within}"
    seconds = f"{job['compute_s']} s, {job['startup_s']} s start-up"
    on_gpu = f", {job['peak_gpu_memory_mb']} MB on the GPU" if "peak_gpu_memory_mb" in job else ""
    yield "took", f"{seconds}, {job['peak_memory_mb']} MB{on_gpu}"
    yield "content", _compare(artefact, artefact.name, by_path(job["outputs"]))
    yield "source", _source(artefact)
    yield "versions", ", ".join(f"{name} {number}" for name, number in job["versions"].items())
    yield "record", str(artefact.record)
    yield from (("recipe", str(Path(recipe).parent)) for recipe in job["inputs"].get("recipe", ()))


def _source(artefact: Artefact) -> str:
    """Compare the source of then with the source of now."""
    if artefact.job["source"] is None:
        return "not recorded: the job was run by hand, or by an earlier version"
    changed = changes_of_source(artefact.job)
    return f"changed since: {', '.join(changed)}" if changed else "the same now"


def _compare(artefact: Artefact, name: str, recorded: Mapping[str, str | None]) -> str:
    """Return the digest of a file, compared with the recorded one."""
    now = content_digest(artefact.root / name)
    then = recorded.get(name)
    if then is None:
        return now or "gone"
    return f"{now}{UNCHANGED}" if now == then else f"{now or 'gone'}, was {then}"


def settings_of(artefact: Artefact) -> Mapping[str, Any]:
    """Return the settings in the job's recipe, if it has one that is still there."""
    for recipe in artefact.job["inputs"].get("recipe", ()):
        path = artefact.root / recipe
        return load_yaml(path)["settings"] if path.is_file() else {}
    return {}


def files_read(artefact: Artefact) -> Iterator[str]:
    """Yield the input files of each option; of unchanged files, only the first `SHOWN`."""
    recorded = by_path(artefact.job["inputs"])
    for option, files in _read(artefact).items():
        yield f"  {option}"
        yield from _some([(_compare(artefact, file, recorded), file) for file in files])


def _raw_files(artefact: Artefact, folder: Path | None) -> Iterator[str]:
    """Yield the raw files of the data sets that the file is part of, or was made from."""
    read = [file for files in _read(artefact).values() for file in files]
    behind = data_behind(artefact.root, [*by_path(artefact.job["inputs"]), *read])
    for data, place, files in raw_changes(artefact.root, [artefact.name, *read, *behind], folder):
        if not files:
            continue
        yield f"raw files of {data}, in {place}"
        yield from _some(files)


def _damaged(artefact: Artefact) -> list[str]:
    """Return what is wrong with records that could not be read."""
    told = [f"  {fault}" for fault in artefact.damaged]
    return ["damaged records, left out", *told] if told else []


def _remedy(artefact: Artefact) -> list[str]:
    """Return the command that makes a missing file again."""
    if (artefact.root / artefact.name).is_file():
        return []
    elsewhere = artefact.root.resolve() != Path.cwd()
    place = f"cd {shlex.quote(str(artefact.root))} && " if elsewhere else ""
    command = as_typed("snakemake", "--cores", "all", artefact.name)
    return ["to make it again", f"  {place}{command}"]


def _some(rows: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield one line per file; of unchanged files, only the first `SHOWN`."""
    hidden = set([row for row in rows if row[0].endswith(UNCHANGED)][SHOWN:])
    yield from _table((row for row in rows if row not in hidden), indent=4)
    if hidden:
        yield f"    and {len(hidden)} more{UNCHANGED}"


def _read(artefact: Artefact) -> Mapping[str, Iterable[str]]:
    """Return the job's inputs by option; in a segment, inputs of the stage that made the file."""
    inputs: dict[str, dict[str, Any]] = artefact.job["inputs"]
    if own := _job_of_segment(artefact):
        return {option: listed(files) for option, files in own.inputs.items() if files}
    runs = (artefact.root / file for file in inputs.get("runs", ()))
    return inputs | listed_files(artefact.job["stage"], runs)


def _job_of_segment(artefact: Artefact) -> Job | None:
    """Return the job of a round that a segment ran to make a file, None if no segment made it."""
    in_segment = artefact.job["stage"] in ("segment", "logits_segment")
    return find_round_job(artefact.root, artefact.name) if in_segment else None


def _section(title: str, content: Mapping[str, Any]) -> list[str]:
    if not content:
        return []
    text = yaml.safe_dump(dict(content), sort_keys=False)
    return [title, *(f"  {line}" for line in text.splitlines())]


def _table(rows: Iterable[tuple[str, str]], indent: int = 2) -> list[str]:
    """Align the second column."""
    kept = list(rows)
    width = max((len(name) for name, _ in kept), default=0)
    return [f"{' ' * indent}{name:{width}}  {value}" for name, value in kept]
