"""Where raw data is, if no stage is told otherwise."""

import os
from pathlib import Path

VARIABLE = "FEDSTAGE_DATA"


def default_folder() -> Path | None:
    """Return the folder that the environment names; the Snakefile sets it from `data_folder`."""
    folder = os.environ.get(VARIABLE)
    return Path(folder) if folder else None
