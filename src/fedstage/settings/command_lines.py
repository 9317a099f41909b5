"""Commands that messages suggest, as a user types them."""

import os
import shlex
import shutil


def as_typed(*words: str) -> str:
    """Return a command of this package or snakemake, quoted for the shell.

    It begins with ``uv run`` if the current command did, or if the command would not be found
    otherwise.
    """
    through_uv = "UV_RUN_RECURSION_DEPTH" in os.environ or shutil.which(words[0]) is None
    return shlex.join(["uv", "run", *words] if through_uv else words)


def see_list(kind: str) -> str:
    """Return where the names of a kind are listed: ``see `fedstage list methods```."""
    return f"see `{as_typed('fedstage', 'list', kind)}`"
