"""Snakemake finds its logger plugins by such names; the default profile chooses this one."""

from fedstage.execution.terminal_log import LogHandler

__all__ = ["LogHandler"]
