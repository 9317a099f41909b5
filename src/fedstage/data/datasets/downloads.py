"""Downloads of published data sets."""

import os
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fedstage.errors import FedstageError


def download(place: Path, get: Callable[[Path], Any], what: str) -> None:
    """Download a file or folder, unless it is there, by a function that puts it into a folder.

    It is put into a temporary folder and then renamed, so that two jobs may do so at once and all
    files exist or none.

    Raises
    ------
    FedstageError
        If that fails.
    """
    if place.exists():
        return
    try:
        with TemporaryDirectory(dir=place.parent, prefix=f".{place.name}-") as temporary:
            get(Path(temporary))
            os.rename(Path(temporary, place.name), place)
    except (OSError, RuntimeError, HTTPException) as error:
        if place.exists():  # another job was faster
            return
        fault = f"not there, and downloading {what} into {place.parent} failed ({error})"
        hint = "allow the download or put the official files there"
        raise FedstageError(f"{place}: {fault}; {hint}") from None
