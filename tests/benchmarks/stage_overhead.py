"""What a job costs beside its computing: the quickest stage, many times, through snakemake.

uv run python -m tests.benchmarks.stage_overhead [JOBS] [--cold]

Prints milliseconds a job of snakemake with warm workers (or with a process a job), and of snakemake
with a command that does nothing, in the same run.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.shared.recipes import recipe

from fedstage.plan.data_files import participation_table
from fedstage.plan.graph import recipe_file
from fedstage.storage.planned import write_recipe

SNAKEFILE = """
from fedstage.execution.executor import prepare
from fedstage.settings.config_file import Execution

prepare(Execution())


rule all:
    input:
        expand("{made}", n=range({jobs})),


rule stage:
    input:
        "{read}",
    output:
        "{made}",
    shell:
        "{command}"
"""
STAGE = "fedstage run participation {input} first=1 last=100"
FIRST = participation_table(recipe(seed=0), 1)
READ_AND_MADE = (recipe_file(FIRST.job.folder), FIRST)
NOTHING = "touch {output}"


def main(arguments: list[str]) -> None:
    """Measure and print."""
    jobs = next((int(word) for word in arguments if word.isdecimal()), 500)
    executor = "local" if "--cold" in arguments else "fedstage"
    nothing = seconds_of(NOTHING, jobs, executor)
    stage = seconds_of(STAGE, jobs, executor)
    print(f"jobs {jobs}, cores 2, executor {executor}")
    print(f"snakemake alone {1000 * nothing / jobs:.1f} ms a job")
    print(f"with a stage    {1000 * stage / jobs:.1f} ms a job")


def seconds_of(command: str, jobs: int, executor: str) -> float:
    """Return the seconds of a snakemake run, beyond those of one with a single job."""
    return measure(command, jobs + 1, executor) - measure(command, 1, executor)


def measure(command: str, jobs: int, executor: str) -> float:
    """Return the wall-clock seconds of a snakemake run."""
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(jobs):
            job = participation_table(recipe(seed=seed), 1).job
            write_recipe(f"{folder}/{recipe_file(job.folder)}", job.config)
        read, made = (path.replace("seed0", "seed{n}") for path in READ_AND_MADE)
        text = SNAKEFILE.format(jobs=jobs, command=command, read=read, made=made)
        Path(folder, "Snakefile").write_text(text)
        begin = time.perf_counter()
        subprocess.run(
            [
                sys.executable,
                "-m",
                "snakemake",
                "--cores",
                "2",
                "--scheduler",
                "greedy",
                "--executor",
                executor,
            ],
            cwd=folder,
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        return time.perf_counter() - begin


if __name__ == "__main__":
    main(sys.argv[1:])
