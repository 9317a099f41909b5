"""Kills at seeded moments; then the run goes on to its end, and its files are compared.

    python -m tests.chaos.kills --kills 300 --seed 18              in every mode
    python -m tests.chaos.kills --kills 20 --mode "segment, warm"

Prints a line of JSON a mode: kills by what was killed and by signal, runs, wrong files, hangs and
strays; exit status 1 if there is any of the last three.
"""

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread

from .runs import MODES, Folder, Mode

#: What is killed. `group` is what Ctrl-C reaches: snakemake, and shells. `rename` is a
#: worker (or a stage's own process) that has written a file, before or after it takes its name.
TARGETS = {
    True: ["snakemake", "group", "worker", "fork server", "rename"],
    False: ["snakemake", "group", "stage", "rename"],
}
SIGNALS = [signal.SIGKILL, signal.SIGTERM, signal.SIGINT]
Victim = tuple[str, signal.Signals]
#: Seconds after which a process is considered hung.
LIMIT = float(os.environ.get("FEDSTAGE_CHAOS_LIMIT", "1800"))
#: How snakemake says that a job has started.
STARTED = re.compile(r"Job \d+: ")
#: Seconds within which a process of a job is killed: without warm workers it first starts Python.
SOON = {True: 0.5, False: 3.0}
#: Of jobs that fail, such as those whose worker was killed: one run has many of them.
ON = ("--keep-going", "--retries", "6")


@dataclass
class Tally:
    """What has happened in a mode."""

    mode: str
    kills: Counter[str] = field(default_factory=Counter)
    runs: int = 0
    finished: int = 0
    wrong: list[str] = field(default_factory=list)
    hangs: list[str] = field(default_factory=list)
    strays: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    @property
    def faults(self) -> list[str]:
        """All that must not happen."""
        return [*self.wrong, *self.hangs, *self.strays, *self.failed]

    def __str__(self) -> str:
        found = {key: value for key, value in vars(self).items() if not isinstance(value, list)}
        lists = {key: value for key, value in vars(self).items() if isinstance(value, list)}
        return json.dumps(found | {"killed": self.kills.total()} | lists)


def campaign(
    mode: Mode, kills: int, seed: int, within: Path, expected: dict[str, str],
    targets: Sequence[str] = (),
) -> Tally:  # fmt: skip
    """Kill so many processes in a mode, of all targets or these, in as many runs as it takes."""
    draw, tally = random.Random(f"{seed}-{mode}"), Tally(str(mode))
    victims = drawn_victims(targets or TARGETS[mode.warm], seed)
    number = 0
    while tally.kills.total() < kills:
        number += 1
        folder = Folder(within / f"{mode.granularity[0]}{int(mode.warm)}-{number}", mode)
        disturb(folder, victims, draw, kills, tally)
        finish(folder, tally, expected)
        print(tally, file=sys.stderr, flush=True)
    return tally


def drawn_victims(targets: Sequence[str], seed: int) -> Iterator[Victim]:
    """Yield what is killed in one run after the other.

    SIGTERM at the wrong moment hangs Snakemake, whose handler waits for a lock of its own thread.
    """
    draw = random.Random(f"{seed}-{targets}")
    while True:
        target, number = draw.choice(targets), draw.choice(SIGNALS)
        if target not in ("snakemake", "group") or number != signal.SIGTERM:
            yield target, number


def disturb(
    folder: Folder, victims: Iterator[Victim], draw: random.Random, kills: int, tally: Tally
) -> None:
    """Start runs of a folder and kill in them, until one has come to its end all the same."""
    while tally.kills.total() < kills:
        target, number = next(victims)
        if one_run(folder, draw, target, number, tally) == 0:
            return


def one_run(
    folder: Folder, draw: random.Random, target: str, number: signal.Signals, tally: Tally
) -> int | None:
    """Start a run, kill in it; return its exit code once all of its processes have ended."""
    log, variables = folder.path / "renames", {}
    log.unlink(missing_ok=True)
    if target == "rename":
        variables = {"FEDSTAGE_CHAOS_RENAMES": "0.2", "FEDSTAGE_CHAOS_LOG": str(log),
                     "FEDSTAGE_CHAOS_SEED": str(draw.random())}  # fmt: skip
    running = folder.start(*ON, **variables)
    tally.runs += 1
    what = f"{target} {number.name}"
    killer = Thread(target=kill_in, args=(folder, running, draw, target, number, tally))
    killer.start()
    try:
        code = running.wait(LIMIT)
    except subprocess.TimeoutExpired:
        tally.hangs.append(f"{tally.mode}: {folder.path.name}: snakemake after {what}")
        running.kill()
        code = None
    killer.join()
    if log.exists():
        tally.kills.update(f"{when} a rename SIGKILL" for when in log.read_text().split())
    left = folder.end(LIMIT / 4)
    tally.strays += [f"{tally.mode}: {folder.path.name}: {one} after {what}" for one in left]
    return code


def kill_in(
    folder: Folder, running: subprocess.Popen[str], draw: random.Random, target: str,
    number: signal.Signals, tally: Tally,
) -> None:  # fmt: skip
    """Read what snakemake says, and kill some time after a job has started."""
    output = running.stdout
    assert output is not None
    whole = target in ("snakemake", "group")
    due = draw.randrange(6)  # of the whole: after so many jobs have started
    with (folder.path / "snakemake.log").open("a") as log:
        for recipe in output:
            log.write(recipe)
            if target == "rename" or not STARTED.match(recipe):
                continue
            if whole and due == 0:
                time.sleep(draw.random() * 1.5)
                send(folder, running, target, number, draw, tally)
            elif not whole and draw.random() < 0.7:
                time.sleep(draw.random() * SOON[folder.mode.warm])
                send(folder, running, target, number, draw, tally)
            due -= 1


def send(
    folder: Folder, running: subprocess.Popen[str], target: str, number: signal.Signals,
    draw: random.Random, tally: Tally,
) -> None:  # fmt: skip
    """Send a signal to a target that runs."""
    if target in ("snakemake", "group"):
        if running.poll() is not None:
            return
        victim = running.pid
    else:
        found = sorted(pid for pid, what in folder.processes().items() if what == target)
        if not found:
            return
        victim = draw.choice(found)
    with suppress(ProcessLookupError):
        (os.killpg if target == "group" else os.kill)(victim, number)
        tally.kills[f"{target} {number.name}"] += 1


def finish(folder: Folder, tally: Tally, expected: dict[str, str]) -> None:
    """Let a run come to its end; compare its files, and look for what is left over."""
    name = f"{tally.mode}: {folder.path.name}"
    running = folder.start()
    tally.runs += 1
    try:
        output, _ = running.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        running.kill()
        tally.hangs.append(f"{name}: the last run")
        return
    if running.returncode:
        tally.failed.append(f"{name}: {output[-2000:]}")
        return
    tally.finished += 1
    tally.strays += [f"{name}: process {one}" for one in folder.end(LIMIT / 4)]
    verified = folder.verify(LIMIT)
    if verified.returncode:
        tally.failed.append(f"{name}: {verified.stdout}{verified.stderr}")
    tally.strays += [f"{name}: {path}" for path in folder.strays()]
    tally.wrong += [f"{name}: {path}" for path in differing(expected, folder.digests())]


def differing(expected: dict[str, str], found: dict[str, str]) -> list[str]:
    """Return the files that are missing, not expected, or have other bytes."""
    names = sorted(expected.keys() | found.keys())
    return [name for name in names if expected.get(name) != found.get(name)]


def undisturbed(within: Path) -> dict[str, str]:
    """Return the digests of a run that nobody has disturbed."""
    folder = Folder(within / "undisturbed", MODES[0])
    running = folder.start()
    output, _ = running.communicate(timeout=LIMIT)
    if running.returncode:
        raise RuntimeError(output)
    folder.end(LIMIT / 4)
    return folder.digests()


def main() -> int:
    """Kill in every mode, or in one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--kills", type=int, default=300, help="in each mode")
    parser.add_argument("--seed", type=int, default=18)
    parser.add_argument("--mode", choices=[str(mode) for mode in MODES])
    parser.add_argument("--targets", nargs="*", default=(), help="by default all of the mode")
    options = parser.parse_args()
    faults = []
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="chaos-") as folder:
        expected = undisturbed(Path(folder))
        for mode in MODES:
            if options.mode in (None, str(mode)):
                given = (options.kills, options.seed, Path(folder), expected, options.targets)
                tally = campaign(mode, *given)
                print(tally, flush=True)
                faults += tally.faults
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
