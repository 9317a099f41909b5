"""Snakemake finds its executor plugins by such names; the default profile chooses this one."""

from snakemake.executors.local import common_settings

from fedstage.execution.executor import Executor, ExecutorSettings

__all__ = ["Executor", "ExecutorSettings", "common_settings"]
