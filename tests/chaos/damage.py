"""Damaged inputs: each stage that reads a damaged file refuses it, or writes what it did before.

    python -m tests.chaos.damage --count 2000 --seed 18            in a run of its own
    python -m tests.chaos.damage --count 2000 --one-shot           in another one
    python -m tests.chaos.damage --folder FOLDER                   in a copy of a finished run

Artefacts of a finished run are damaged one at a time, and all jobs that read them run again, by the
commands in their records. Prints JSON: how many inputs of which kind were damaged, and how often a
reader refused them in one line, wrote the same, ended with a traceback, or accepted other data,
which is the one thing that must not happen. Exit status 1 if there is any of the last two.
"""

import argparse
import io
import json
import random
import resource
import shutil
import signal
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import (
    AbstractContextManager,
    chdir,
    nullcontext,
    redirect_stderr,
    redirect_stdout,
)
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedstage.execution.cli import main as fedstage
from fedstage.storage.files import load_json
from fedstage.storage.provenance import SUFFIX

#: Kinds of files that state a digest of their content.
KINDS = (".safetensors", ".parquet")
PAGE = 4096
#: What a damaged length may make a reader allocate, beside what it has, and its seconds.
MEMORY, SECONDS = 8 * 2**30, 120

Damage = Callable[[bytes, random.Random, list[bytes]], bytes]


def flip(raw: bytes, draw: random.Random, _: list[bytes]) -> bytes:
    """One to three bits; half of the time among the first or last 600 bytes: headers, footers."""
    new = bytearray(raw)
    for _ in range(draw.choice([1, 1, 2, 3])):
        near = draw.randrange(min(600, len(raw)))
        new[draw.choice([draw.randrange(len(raw)), near, -1 - near])] ^= 1 << draw.randrange(8)
    return bytes(new)


def truncate(raw: bytes, draw: random.Random, _: list[bytes]) -> bytes:
    return raw[: draw.randrange(1, len(raw))]


def empty(raw: bytes, draw: random.Random, _: list[bytes]) -> bytes:
    return b""


def zero(raw: bytes, draw: random.Random, _: list[bytes]) -> bytes:
    """A page, as after a crash; a piece of it in a small file."""
    size = min(PAGE, max(1, len(raw) // 4))
    start = draw.randrange(0, len(raw), size)
    return raw[:start] + bytes(len(raw[start : start + size])) + raw[start + size :]


def swap(raw: bytes, draw: random.Random, others: list[bytes]) -> bytes:
    """Another file of its kind."""
    return draw.choice(others) if others else truncate(raw, draw, others)


def mix(raw: bytes, draw: random.Random, others: list[bytes]) -> bytes:
    """Its beginning, and the end of another file of its kind."""
    other = swap(raw, draw, others)
    cut = draw.randrange(len(raw))
    return raw[:cut] + other[cut:]


def extend(raw: bytes, draw: random.Random, _: list[bytes]) -> bytes:
    return raw + draw.randbytes(draw.randrange(1, 200))


DAMAGES: list[Damage] = [flip, flip, flip, truncate, empty, zero, swap, swap, mix, extend]


@dataclass(frozen=True)
class Job:
    """A job of the finished run."""

    name: str
    arguments: tuple[str, ...]
    inputs: frozenset[str]
    outputs: tuple[str, ...]
    record: Path


def jobs() -> Iterator[Job]:
    """Yield the jobs of the finished run in this folder, from their records."""
    for path in sorted(Path("results/logs").rglob(f"*{SUFFIX}")):
        record = load_json(path)
        (file,) = next(iter(record["inputs"].values()))  # a recipe or a description
        arguments = ["run", record["stage"], file]
        for name, value in record["options"].items():
            several = value if isinstance(value, list) else [value]
            arguments.append(f"{name}={','.join(map(str, several))}")
        inputs = frozenset(name for paths in record["inputs"].values() for name in paths)
        outputs = tuple(name for paths in record["outputs"].values() for name in paths)
        yield Job(record["stage"], tuple(arguments), inputs, outputs, path)


def run(job: Job) -> str:
    """Run a job; return `done`, `refused`, or what else came of it, with its last line."""
    said = io.StringIO()
    signal.alarm(SECONDS)
    try:
        with redirect_stderr(said), redirect_stdout(io.StringIO()):
            code = fedstage(job.arguments)
    except BaseException as error:  # noqa: BLE001 - that is what is looked for
        return f"traceback: {type(error).__name__}: {error}"
    finally:
        signal.alarm(0)
    if code == 0:
        return "done"
    lines = said.getvalue().strip().splitlines()
    last = lines[-1] if lines else ""
    return "refused" if last.startswith(f"fedstage {job.name}: ") else f"no line: {last}"


def bytes_of(names: tuple[str, ...]) -> dict[str, bytes]:
    return {name: Path(name).read_bytes() for name in names if Path(name).is_file()}


def outcome(
    job: Job, right: dict[str, bytes], around: AbstractContextManager[Any] | None = None
) -> str:
    """Run a job without its outputs; put these back, and return what came of it.

    The record, too, whose seconds are in scores.
    """
    record = job.record.read_bytes()
    for name in job.outputs:
        Path(name).unlink(missing_ok=True)
    with around or nullcontext():
        ended = run(job)
    written = bytes_of(job.outputs)
    for name, content in right.items():
        Path(name).write_bytes(content)
    job.record.write_bytes(record)
    if any(content != right.get(name, content) for name, content in written.items()):
        return "other output"
    if ended == "done":
        return "same" if written.keys() >= right.keys() else "output missing"
    return ended


def draw_damaged(draw: random.Random, kinds: dict[str, list[str]]) -> tuple[str, str, bytes]:
    """Return a file, a kind of damage, and the damaged content."""
    while True:
        kind = draw.choice(sorted(kinds))
        name, damage = draw.choice(kinds[kind]), draw.choice(DAMAGES)
        raw = Path(name).read_bytes()
        others = [Path(other).read_bytes() for other in kinds[kind] if other != name]
        new = damage(raw, draw, others)
        if new != raw:
            return name, damage.__name__, new


def kind_of(name: str) -> str:
    """Return the kind of a file: its path without what numbers or names a recipe."""
    parts = Path(name).parts
    stem = parts[-1].split("_")[0].split("-")[0]
    return f"{parts[1]}/{stem.rstrip('0123456789')}{Path(name).suffix}"


def readers_of() -> dict[str, list[tuple[Job, dict[str, bytes]]]]:
    """Return the jobs that read each file, with what they write if nothing is damaged.

    Temporary files are made again: a job waits for those that it reads.
    """
    readers, waiting = defaultdict(list), list(jobs())
    while waiting:
        job = next(one for one in waiting if all(Path(name).exists() for name in one.inputs))
        waiting.remove(job)
        if (came := outcome(job, bytes_of(job.outputs))) != "same":
            raise SystemExit(f"{job.arguments}: {came}, and nothing is damaged yet")
        right = bytes_of(job.outputs)
        for name in job.inputs:
            if name.endswith(KINDS):
                readers[name].append((job, right))
    return readers


def attack(count: int, seed: int) -> dict[str, Any]:
    """Damage so many inputs in this folder, one after the other; return what came of it."""
    draw, readers = random.Random(seed), readers_of()
    kinds: dict[str, list[str]] = defaultdict(list)
    for name in sorted(readers):
        kinds[kind_of(name)].append(name)
    damaged: Counter[str] = Counter()
    came: Counter[str] = Counter()
    same: Counter[str] = Counter()
    faults: list[str] = []
    for _ in range(count):
        name, damage, new = draw_damaged(draw, kinds)
        whole = Path(name).read_bytes()
        Path(name).write_bytes(new)
        damaged[f"{Path(name).suffix} {damage}"] += 1
        for job, right in readers[name]:
            found = outcome(job, right)
            came[found.partition(":")[0]] += 1
            same[f"{Path(name).suffix} {damage}"] += found == "same"
            if found not in ("same", "refused"):
                faults.append(f"{name}: {damage}: {job.name}: {found}")
        Path(name).write_bytes(whole)
    return {"damaged": damaged, "inputs": damaged.total(), "kinds": len(kinds),
            "readings": came.total(), "came": came, "same": +same, "faults": faults}  # fmt: skip


def make(folder: Path, one_shot: bool = False) -> None:
    """Make the run that is damaged: of two methods with rounds, or of two one-shot methods."""
    from .runs import MODES, ONE_SHOT, Folder

    methods = list(ONE_SHOT) if one_shot else ["fedsdd", "scaffold"]
    one = Folder(folder, MODES[0], methods=methods)
    output, _ = (running := one.start()).communicate(timeout=1800)
    if running.returncode:
        raise SystemExit(output)
    one.end(60)


def main() -> int:
    """Damage inputs of a run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=18)
    parser.add_argument("--folder", type=Path, help="a finished run; a copy is damaged")
    parser.add_argument("--one-shot", action="store_true", help="a run of one-shot methods")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="chaos-") as temporary:
        copy = Path(temporary, "run")
        if options.folder is None:
            make(copy, options.one_shot)
        else:
            shutil.copytree(options.folder, copy)
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
        with chdir(copy):
            found = attack(options.count, options.seed)
    print(json.dumps(found))
    return bool(found["faults"])


if __name__ == "__main__":
    sys.exit(main())
