"""What a job costs beside its computing: the quickest stage, many times, through snakemake.

uv run python -m tests.benchmarks.stage_overhead [JOBS] [--cold]

Prints milliseconds a job of snakemake with warm workers (or with a process a job), and of snakemake
with a command that does nothing, in the same run.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
SNAKEFILE = """
import os
from pathlib import Path
from fedstage.settings.config_file import Execution
from fedstage.execution.environment import prepare

prepare(os.environ, Path("{repository}/workflow/bin"), Execution())


rule all:
    input:
        expand("out/{{n}}", n=range({jobs})),


rule stage:
    output:
        "out/{{n}}",
    shell:
        "{command}"
"""
STAGE = "fedstage recipe --settings 1 --output {output}"
NOTHING = "touch {output}"


def main(arguments: list[str]) -> None:
    """Measure and print."""
    jobs = next((int(word) for word in arguments if word.isdecimal()), 500)
    warm = "0" if "--cold" in arguments else "1"
    nothing = seconds_of(NOTHING, jobs, warm)
    stage = seconds_of(STAGE, jobs, warm)
    print(f"jobs {jobs}, cores 2, warm {warm}")
    print(f"snakemake alone {1000 * nothing / jobs:.1f} ms a job")
    print(f"with a stage    {1000 * stage / jobs:.1f} ms a job")


def seconds_of(command: str, jobs: int, warm: str) -> float:
    """Return the seconds of a snakemake run, beyond those of one with a single job."""
    return measure(command, jobs + 1, warm) - measure(command, 1, warm)


def measure(command: str, jobs: int, warm: str) -> float:
    """Return the wall-clock seconds of a snakemake run."""
    with tempfile.TemporaryDirectory() as folder:
        text = SNAKEFILE.format(repository=REPOSITORY, jobs=jobs, command=command)
        Path(folder, "Snakefile").write_text(text)
        begin = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "snakemake", "--cores", "2", "--scheduler", "greedy"],
            cwd=folder,
            env=os.environ | {"FEDSTAGE_WARM": warm},
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        return time.perf_counter() - begin


if __name__ == "__main__":
    main(sys.argv[1:])
