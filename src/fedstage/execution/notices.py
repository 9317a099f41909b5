"""What a stage warns of while it succeeds: on the terminal, and in the job's log."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO


@contextmanager
def noticing(command: str) -> Iterator[StringIO]:
    """Give a text to which every warning of the package's loggers is added, a line each."""
    text, logger = StringIO(), logging.getLogger("fedstage")
    handler = logging.StreamHandler(text)
    handler.setLevel(logging.WARNING)
    handler.setFormatter(logging.Formatter(f"fedstage {command}: %(message)s"))
    logger.addHandler(handler)
    try:
        yield text
    finally:
        logger.removeHandler(handler)
