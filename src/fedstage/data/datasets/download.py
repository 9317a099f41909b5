"""Fetching a file of a data set."""

import shutil
from http.client import HTTPException
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from fedstage.errors import FedstageError

SECONDS = 60  # without an answer


def download(url: str, output: Path, place: Path) -> None:
    """Write what stands at a URL to `output`, which will be renamed to `place`.

    Raises
    ------
    FedstageError
        If that fails: names `place` and the URL.
    """
    try:
        with urlopen(url, timeout=SECONDS) as answer, output.open("wb") as file:
            shutil.copyfileobj(answer, file)
    except (OSError, URLError, HTTPException) as error:
        raise FedstageError(
            f"{place}: not there, and downloading {url} failed ({error}); allow the download or "
            "put the official file there"
        ) from None
