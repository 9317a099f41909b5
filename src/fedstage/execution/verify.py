"""``fedstage verify``: whether the files of finished work are what they say."""

import os
import shlex
import sys
from collections.abc import Sequence

from fedstage.errors import FedstageError
from fedstage.execution.leftovers import sweep
from fedstage.execution.missing import finished, gone, options_of, summary, working_folder
from fedstage.storage.provenance import SUFFIX as RECORD
from fedstage.storage.verification import faults


def list_faults(arguments: Sequence[str]) -> str:
    """Return that all files are right, after removing what killed processes have left.

    `arguments` are those of `fedstage.execution.missing.summary`.

    Raises
    ------
    FedstageError
        If any is wrong or missing: each has been printed with its reason, and the command that
        makes them again is in the message. Or if snakemake cannot plan the targets.
    """
    root = working_folder(arguments)
    for path in sweep(root, os.environ):
        print(f"{path}: removed, left by a process that has ended", file=sys.stderr)
    rows = summary(arguments)
    files = dict.fromkeys(row["output_file"] for row in rows)
    there = [name for name in files if (root / name).is_file()]
    wrong = dict.fromkeys(gone(rows), "is gone") | dict(faults(root, there, finished(rows)))
    for name, reason in wrong.items():
        print(f"{name}: {reason}", flush=True)
    if wrong:
        raise FedstageError(_cure(list(wrong), there, arguments))
    return f"{len(there)} files are what they say, and were made from what is there"


def _cure(wrong: Sequence[str], there: Sequence[str], arguments: Sequence[str]) -> str:
    """Return how many files are wrong, and what makes them again."""
    names = [name for name in wrong if not name.endswith(RECORD)]
    count = f"{len(wrong)} wrong or gone, of {len(there)} files there"
    if not names:
        return f"{count}: records only, which nothing makes again; delete them"
    command = shlex.join(["snakemake", "--cores", "all", *options_of(arguments), "--force", *names])
    return f"{count}; to make them again: {command}"
