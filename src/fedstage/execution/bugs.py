"""One line for an unexpected error: where it is from, and its first line."""

import traceback
from pathlib import Path

from fedstage.settings.plugins import describe_error, line_of_plugin

_PACKAGE = Path(__file__).parents[1]


def describe_bug(error: Exception) -> str:
    """Return the last line of a plugin, or else of this package, behind an error, and the error."""
    return f"{line_of_plugin(error) or _line_of_package(error)}{describe_error(error)}"


def _line_of_package(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if Path(frame.filename).is_relative_to(_PACKAGE)]
    if not own:
        return ""
    return f"{Path(own[-1].filename).relative_to(_PACKAGE.parent)}, line {own[-1].lineno}: "
