"""What a run costs before its first training, and a short run as a whole.

uv run python -m tests.benchmarks.starting [--turns N] [--only NAME ...] [--repository FOLDER]

Plans (`snakemake -n`) are compared in turns with those of a Snakefile of as many jobs that do
nothing. The short run is FedAvg on CIFAR-10 in Parquet, below FEDSTAGE_DATA: in each of 4 rounds
(`--rounds`) 4 trainings of ResNet-20 on 500 images for 2 epochs. `--repository` measures another
checkout, such as that of an earlier commit, by its own environment.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import yaml
from tests.benchmarks.projects import jobs
from tests.benchmarks.rows import REPOSITORY, parser, report

from fedstage.training.devices import computes_bf16

TABLE = "results/tables/fedsdd_table2/paper.md"
NOTHING = """
rule all:
    input:
        expand("out/{{n}}", n=range({jobs})),


rule job:
    output:
        "out/{{n}}",
    shell:
        "touch {{output}}"
"""
PRECISION = "bf16" if computes_bf16() else "fp32"
#: A recipe with the numerics in which this CPU is fastest.
SHORT = {
    "data": {"parquet": {"folder": "cifar10", "train_size": 5000, "test_size": 1000}},
    "clients": 10,
    "partition": "iid",
    "participants": 4,
    "model": "resnet20",
    "client": {"epochs": 2, "batch_size": 64, "learning_rate": 0.1, "augmentation": "crop_flip"},
    "numerics": {"device": "cpu", "precision": PRECISION, "memory_format": "channels_last"},
}

Figures = dict[str, float]


def main(arguments: list[str]) -> None:
    """Measure and print."""
    options = parser(__doc__)
    options.add_argument("--turns", type=int, default=5)
    options.add_argument("--only", nargs="*", choices=PARTS, default=list(PARTS))
    options.add_argument("--rounds", type=int, default=4, help="of the short run")
    options.add_argument("--repository", type=Path, default=REPOSITORY)
    chosen = options.parse_args(arguments)
    figures: Figures = {}
    parts = {**PARTS, "short_run": partial(short_run, rounds=chosen.rounds)}
    for name in chosen.only:
        figures |= parts[name](chosen.repository.resolve(), chosen.turns)
    report("starting", figures, vars(chosen), chosen.output)


def plan(repository: Path, turns: int) -> Figures:
    """Plan the quickstart."""
    content = yaml.safe_load((REPOSITORY / "config.yaml").read_text())
    return _against_nothing("plan of the quickstart", repository, content, turns)


def table(repository: Path, turns: int) -> Figures:
    """Plan a large table in segments, with all files kept and with those that are needed."""
    figures: Figures = {}
    for keep in ("needed", "all"):
        content = yaml.safe_load((REPOSITORY / "config.yaml").read_text())
        content |= {"keep": keep, "execution": {"granularity": "segment"}}
        name = f"plan of FedSDD Table 2, keep: {keep}"
        figures |= _against_nothing(name, repository, content, turns, TABLE)
    return figures


def experiments(repository: Path, turns: int) -> Figures:
    """Plan the quickstart beside 100 more experiments that no target names."""
    seconds: dict[str, list[float]] = {"as it is": [], "with 100 more": []}
    with tempfile.TemporaryDirectory() as folder:
        other = Path(folder, "repository")
        shutil.copytree(repository / "workflow", other / "workflow")
        shutil.copy(repository / "Snakefile", other)
        one = next(other.glob("workflow/papers/fedsdd/experiments/fedsdd_table4.yaml"))
        for number in range(100):
            shutil.copy(one, other / f"workflow/experiments/more_{number}.yaml")
        (Path(folder) / "config.yaml").write_text((REPOSITORY / "config.yaml").read_text())
        for _ in range(turns):
            for name, where in (("as it is", repository), ("with 100 more", other)):
                options = ["--snakefile", str(where / "Snakefile"), "-n"]
                seconds[name].append(_snakemake(repository, Path(folder), *options)[0])
    more, fewer = (statistics.median(seconds[name]) for name in ("with 100 more", "as it is"))
    return {"one more experiment that is not named: ms": 10 * (more - fewer)}


def first_step(repository: Path, turns: int) -> Figures:
    """Make the quickstart, from the command until its first training begins, and as a whole."""
    content = yaml.safe_load((REPOSITORY / "config.yaml").read_text())
    return _run("quickstart", repository, content, turns)


def short_run(repository: Path, turns: int, rounds: int = 4) -> Figures:
    """Make the short run."""
    experiment = {
        "title": "Benchmark",
        "base": SHORT | {"rounds": rounds, "evaluate_every": rounds},
        "grid": {"method": ["fedavg"], "seed": [0]},
        "results": ["table"],
        "scales": {"default": {}},
    }
    content = {"targets": ["measured"], "experiments": {"measured": experiment}}
    return _run(
        f"{4 * rounds} trainings of 500 images x 2 in {PRECISION}", repository, content, turns
    )


PARTS: Mapping[str, Callable[[Path, int], Figures]] = {
    "plan": plan,
    "table": table,
    "experiments": experiments,
    "first_step": first_step,
    "short_run": short_run,
}


def _against_nothing(
    name: str, repository: Path, content: object, turns: int, *targets: str
) -> Figures:
    """Return the seconds of a plan, and their ratio to those of as many jobs that do nothing."""
    snakefile = ["--snakefile", str(repository / "Snakefile")]
    ours, nothing, count = [], [], 0
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as other:
        Path(folder, "config.yaml").write_text(yaml.safe_dump(content))
        trivial = ["--snakefile", f"{other}/Snakefile"]
        for turn in range(turns + 1):
            seconds, printed = _snakemake(repository, Path(folder), *snakefile, "-n", *targets)
            count = jobs(printed)
            Path(other, "Snakefile").write_text(NOTHING.format(jobs=count - 1))
            if turn:  # the first fills caches
                ours.append(seconds)
                nothing.append(_snakemake(repository, Path(other), *trivial, "-n")[0])
    return {
        f"{name}: jobs": count,
        f"{name}: s": statistics.median(ours),
        f"{name}: s of as many jobs that do nothing": statistics.median(nothing),
        f"{name}: ratio": statistics.median(
            one / two for one, two in zip(ours, nothing, strict=True)
        ),
    }


def _run(name: str, repository: Path, content: object, turns: int) -> Figures:
    """Return the seconds of whole runs, and until the first client trains."""
    whole, first, training = [], [], []
    for _ in range(turns):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "config.yaml").write_text(yaml.safe_dump(content))
            begin = time.time()
            options = ("--snakefile", str(repository / "Snakefile"), "--scheduler", "greedy")
            whole.append(_snakemake(repository, Path(folder), *options)[0])
            spans = _trainings(Path(folder))
            first.append(min(start for start, _ in spans) - begin)
            training.append(sum(end - start for start, end in spans))
    cores = len(os.sched_getaffinity(0))
    return {
        f"{name}: s": statistics.median(whole),
        f"{name}: s until the first training": statistics.median(first),
        f"{name}: s of training on each core": statistics.median(training) / cores,
    }


def _trainings(folder: Path) -> list[tuple[float, float]]:
    """Return when each client's training began and ended, by its record."""
    spans = []
    for path in folder.glob("results/logs/**/*.json"):
        record = yaml.safe_load(path.read_text())
        if record["stage"] in ("local_training", "local_model"):
            end = path.stat().st_mtime
            spans.append((end - record["compute_s"], end))
    return spans


def _snakemake(repository: Path, folder: Path, *options: str) -> tuple[float, str]:
    """Run snakemake of a repository in a folder; return the seconds, and what it printed."""
    scripts = repository / ".venv/bin"
    place = ["--directory", str(folder)]
    command = [str(scripts / "snakemake"), "--cores", "all", *place, *options]
    environment = os.environ | {"PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    begin = time.perf_counter()
    done = subprocess.run(
        command,
        cwd=repository,  # whose profile is found from here
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        raise SystemExit(done.stdout)
    return time.perf_counter() - begin, done.stdout


if __name__ == "__main__":
    main(sys.argv[1:])
