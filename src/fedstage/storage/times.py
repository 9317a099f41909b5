"""Times of files, by which Snakemake tells what is to be made again."""

import os
from collections.abc import Sequence


def restore_order(paths: Sequence[str]) -> None:
    """Make no file younger than those that were made after it.

    After a job Snakemake renews the times of its outputs, and not of its other files.

    Parameters
    ----------
    paths : sequence of str
        Files in the order in which a job made them; those that are missing are left out.
    """
    youngest = None
    for path in reversed(paths):
        try:
            time = os.stat(path).st_mtime_ns
        except FileNotFoundError:
            continue
        if youngest is not None and time > youngest:
            os.utime(path, ns=(youngest, youngest))
        else:
            youngest = time
