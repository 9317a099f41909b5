"""Messages of a stage while it runs: on the terminal at once, and in the job's record.

These are warnings, and the course of training: losses of rounds and validation accuracies.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from typing import TextIO


class _Line(logging.Formatter):
    """A format of lines in which warnings are marked."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        if record.levelno >= logging.WARNING:
            record.message = f"warning: {record.message}"
        return super().formatMessage(record)


@contextmanager
def noticing(command: str, stream: TextIO | None = None) -> Iterator[StringIO]:
    """Yield a text to which every notice of the package's loggers is added, a line each.

    With a `stream`, each notice is also written there at once.
    """
    text, logger = StringIO(), logging.getLogger("fedstage")
    handlers = [logging.StreamHandler(target) for target in (text, stream) if target is not None]
    level = logger.level
    logger.setLevel(logging.INFO)
    for handler in handlers:
        handler.setFormatter(_Line(f"fedstage {command}: %(message)s"))
        logger.addHandler(handler)
    try:
        yield text
    finally:
        logger.setLevel(level)
        for handler in handlers:
            logger.removeHandler(handler)
