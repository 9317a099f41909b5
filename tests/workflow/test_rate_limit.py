"""Snakemake's limit of jobs a second, which costs the more the more jobs have run."""

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.workflow

REPOSITORY = Path(__file__).parents[2]
TELLS = f"""
include: "{REPOSITORY}/Snakefile"


onsuccess:
    print("limited:", workflow.scheduler.job_rate_limiter is not None, file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("options", "limited"), [((), "False"), (("--max-jobs-per-timespan", "100/2s"), "True")]
)
def test_only_a_limit_that_a_user_sets_holds(copy, tmp_path, options, limited):
    snakefile = tmp_path / "Snakefile"
    snakefile.write_text(TELLS)
    (tmp_path / "workflow").symlink_to(REPOSITORY / "workflow")
    (table,) = copy.files("results/tables/tiny/default.csv")
    (copy.path / table).unlink()
    run = copy.make(str(table), "--snakefile", str(snakefile), *options)
    assert re.findall(r"^limited: (\S+)$", run.output, re.MULTILINE) == [limited]
