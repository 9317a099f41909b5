"""Checksums of inputs, which snakemake would compute anew for each output of a job."""

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.workflow

REPOSITORY = Path(__file__).parents[2]
COUNTS = f"""
import hashlib
from collections import Counter

READ = Counter()
DIGEST = hashlib.file_digest


def count(file, algorithm):
    READ[getattr(file, "name", "nothing")] += 1
    return DIGEST(file, algorithm)


hashlib.file_digest = count


include: "{REPOSITORY}/Snakefile"


onsuccess:
    for file, times in READ.items():
        print("hashed:", times, file, file=sys.stderr)
"""


def test_no_input_is_hashed_twice(copy, tmp_path):
    snakefile = tmp_path / "Snakefile"
    snakefile.write_text(COUNTS)
    (tmp_path / "workflow").symlink_to(REPOSITORY / "workflow")
    (table,) = copy.files("results/tables/tiny/default.csv")
    (copy.path / table).unlink()
    run = copy.make(str(table), "--snakefile", str(snakefile))
    hashed = {file: times for times, file in re.findall(r"^hashed: (\d+) (\S+)$", run.output, re.M)}
    assert "results/descriptions/tiny/default.runs.json" in hashed
    assert set(hashed.values()) == {"1"}
