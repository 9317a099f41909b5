"""Files that do not match their records: found, refused by jobs that read them, and made again."""

import os
import shlex
import shutil
import subprocess
import sys

import pytest

pytestmark = pytest.mark.workflow


def verify(project):
    """Return the exit code, what is wrong by file, and what is said at the end."""
    command = [sys.executable, "-m", "fedstage.execution.cli", "verify"]
    done = subprocess.run(command, cwd=project.path, check=False, capture_output=True, text=True)
    lines = [line.partition(": ") for line in done.stdout.splitlines()]
    wrong = {name: reason for name, colon, reason in lines if colon}
    return (
        done.returncode,
        wrong,
        (done.stderr if done.returncode else done.stdout).splitlines()[-1],
    )


def keep_time(path, write):
    """Write to a file as a fault of the disk would: nothing shows in its times."""
    status = path.stat()
    write()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def put_in_place(one, other):
    keep_time(other, lambda: shutil.copyfile(one, other))


def name(project, path):
    return str(path.relative_to(project.path))


def test_what_is_wrong_is_named_and_made_again(copy):
    code, wrong, said = verify(copy)
    assert (code, wrong) == (0, {})
    assert said.endswith(" files match their records and inputs")
    before, recipe = copy.results(), copy.recipe()
    one, other, *_ = sorted(recipe.glob("round_0001/group_0/participant_*.safetensors"))
    put_in_place(one, other)
    metrics = next(recipe.glob("metrics/*/*.parquet"))
    raw = bytearray(metrics.read_bytes())
    raw[-40] ^= 4
    keep_time(metrics, lambda: metrics.write_bytes(raw))
    table = copy.path / "results/tables/tiny/default.csv"
    keep_time(table, lambda: table.write_text(table.read_text().replace(".", ",", 1)))

    code, wrong, said = verify(copy)
    assert code == 1
    assert "a copy in its place" in wrong[name(copy, other)]
    assert wrong[name(copy, metrics)].startswith("truncated or altered")
    assert wrong[name(copy, table)].startswith("is not what its job wrote")
    average = other.with_name("aggregated.safetensors")
    assert wrong[name(copy, average)].startswith(f"was made from another {name(copy, other)}")
    copy.make(*shlex.split(said.partition("make these again: snakemake --cores all ")[2]))
    copy.make()
    assert copy.results() == before
    assert verify(copy)[:2] == (0, {})


def test_a_job_that_reads_a_copy_fails_with_one_line(copy):
    one, other, *_ = sorted(copy.recipe().glob("round_0001/group_0/participant_*.safetensors"))
    average = other.with_name("aggregated.safetensors")
    put_in_place(one, other)
    average.unlink()
    run = copy.call(name(copy, average))
    assert run.code != 0
    names = [str(path.relative_to(copy.path / "results")) for path in (one, other)]
    fault = f"{name(copy, other)}: is {names[0]}, not {names[1]}: a copy in its place"
    assert f"fedstage aggregation: {fault}; delete it to make it again" in run.output
