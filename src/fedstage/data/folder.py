"""The folder of raw data."""

import os
from pathlib import Path

VARIABLE = "FEDSTAGE_DATA"


def default_folder() -> Path | None:
    """Return the data folder from the environment, which the Snakefile sets from `data_folder`."""
    folder = os.environ.get(VARIABLE)
    return Path(folder) if folder else None
