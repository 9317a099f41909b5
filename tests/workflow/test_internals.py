"""What is replaced in Snakemake, in a real run."""

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.workflow

REPOSITORY = Path(__file__).parents[2]
TELLS = f"""
import signal
import time

include: "{REPOSITORY}/Snakefile"


onsuccess:
    scheduler = workflow.scheduler
    print("index:", type(workflow.dag.output_index).__name__, file=sys.stderr)
    print("limited:", scheduler.job_rate_limiter is not None, file=sys.stderr)
    # The signal finds this thread with the lock, as it may while jobs are chosen.
    with scheduler._lock:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.01)
    time.sleep(0.5)
    print("stopped:", scheduler._user_kill, file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("options", "limited"), [((), "False"), (("--max-jobs-per-timespan", "100/2s"), "True")]
)
def test_an_index_finds_rules_only_a_limit_of_a_user_holds_and_sigterm_never_waits_for_itself(
    copy, tmp_path, options, limited
):
    snakefile = tmp_path / "Snakefile"
    snakefile.write_text(TELLS)
    (tmp_path / "workflow").symlink_to(REPOSITORY / "workflow")
    (table,) = copy.files("results/tables/tiny/default.csv")
    (copy.path / table).unlink()
    run = copy.make(str(table), "--snakefile", str(snakefile), *options)
    told = re.findall(r"^(index|limited|stopped): (\S+)$", run.output, re.MULTILINE)
    assert told == [("index", "IndexBySuffix"), ("limited", limited), ("stopped", "graceful")]
