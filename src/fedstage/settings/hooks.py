"""What a plugin's class overrides of its base: something, and no hook under a misspelt name."""

import re
from collections.abc import Iterator
from typing import Any

from fedstage.settings.registry import PLUGINS
from fedstage.settings.suggestions import nearest

_PACKAGE = __name__.partition(".")[0]


def hook_faults(kind: type[Any]) -> Iterator[str]:
    """Yield what is wrong with a class of a plugin that inherits from a class of this package.

    A method whose name is close to a hook's is taken for misspelt, unless its file calls it.
    """
    built_in = [part for part in kind.__mro__ if part.__module__.partition(".")[0] == _PACKAGE]
    own = [part for part in kind.__mro__ if part.__module__ in PLUGINS.files]
    if not built_in or not own:
        return
    hooks = {name for part in built_in for name in vars(part) if not name.startswith("_")}
    for part in own:
        for name, meant in _misspelt(part, hooks):
            yield f"{kind.__name__}.{name}: no such hook; did you mean {meant!r}?"
    if not any(vars(part).keys() & {*hooks, "__init__"} for part in own):
        yield f"{kind.__name__}: overrides nothing of its base, {built_in[0].__name__}"


def _misspelt(part: type[Any], hooks: set[str]) -> Iterator[tuple[str, str]]:
    """Yield the methods of a class that are not called in its file, with the hooks they may be."""
    text = PLUGINS.files[part.__module__].read_text("utf-8")
    for name, value in vars(part).items():
        if callable(value) and name not in hooks and not name.startswith("_"):
            meant = nearest(name, hooks)
            if meant is not None and not re.search(rf"\.{name}\b", text):
                yield name, meant
