"""Snakemake's command line, asking SLURM after its jobs every second.

The plugin asks 10 s later each time that nothing has finished, which no option changes: right for
a controller that thousands share, too slow for a test with jobs of seconds.
"""

import sys

from snakemake.cli import main
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor

SECONDS = 1.0

if __name__ == "__main__":
    RemoteExecutor.next_seconds_between_status_checks = property(
        lambda executor: SECONDS, lambda executor, seconds: None
    )
    sys.exit(main())
