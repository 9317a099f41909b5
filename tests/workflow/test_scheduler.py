"""The scheduler that runs by default, and that SIGTERM finds it in any state."""

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.workflow

REPOSITORY = Path(__file__).parents[2]
TELLS = f"""
import time

include: "{REPOSITORY}/Snakefile"


onsuccess:
    scheduler = workflow.scheduler
    print("greedy:", scheduler._job_selector == scheduler.job_selector_greedy, file=sys.stderr)
    # The signal finds this thread with the lock, as it may while jobs are chosen.
    with scheduler._lock:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.01)
    time.sleep(0.5)
    print("stopped:", scheduler._user_kill, file=sys.stderr)
"""


@pytest.mark.parametrize(("options", "greedy"), [((), "True"), (("--scheduler", "ilp"), "False")])
def test_the_scheduler_is_greedy_unless_one_is_named_and_sigterm_never_waits_for_itself(
    copy, tmp_path, options, greedy
):
    snakefile = tmp_path / "Snakefile"
    snakefile.write_text(TELLS)
    (tmp_path / "workflow").symlink_to(REPOSITORY / "workflow")
    (table,) = copy.files("results/tables/tiny/default.csv")
    (copy.path / table).unlink()
    run = copy.make(str(table), "--snakefile", str(snakefile), *options)
    told = re.findall(r"^(greedy|stopped): (\S+)$", run.output, re.MULTILINE)
    assert told == [("greedy", greedy), ("stopped", "graceful")]
