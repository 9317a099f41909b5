"""Checks that a plugin's functions take their arguments, and that its hooks are called."""

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fedstage.settings.registry import PLUGINS
from fedstage.settings.suggestions import nearest

_PACKAGE = __name__.partition(".")[0]


def hook_faults(kind: type[Any], settings: type[Any], declared: Mapping[str, str]) -> Iterator[str]:
    """Yield what is wrong with a class of a plugin that inherits from a class of this package.

    A method whose name is close to a hook's counts as misspelt, unless its file calls it.
    `settings` is the class of its settings, which must declare what `declared` requires for a hook.
    """
    built_in = [part for part in kind.__mro__ if part.__module__.partition(".")[0] == _PACKAGE]
    own = [part for part in kind.__mro__ if part.__module__ in PLUGINS.files]
    if not built_in:
        return
    yield from _undeclared(kind, built_in[-1], settings, declared)
    hooks = {name for part in built_in for name in vars(part) if not name.startswith("_")}
    for part in own:
        for name, meant in _misspelt(part, hooks):
            yield f"{kind.__name__}.{name}: no such hook; did you mean {meant!r}?"


def _undeclared(
    kind: type[Any], base: type[Any], settings: type[Any], declared: Mapping[str, str]
) -> Iterator[str]:
    """Yield the hooks that a class overrides although its settings do not declare them."""
    for hook, attribute in declared.items():
        own = getattr(kind, hook, None) is not getattr(base, hook, None)
        if own and not getattr(settings, attribute, True):  # a field counts as true
            yield (
                f"{kind.__name__}.{hook}: needs {attribute} = True in the settings class "
                f"{settings.__name__}"
            )


def _misspelt(part: type[Any], hooks: set[str]) -> Iterator[tuple[str, str]]:
    """Yield the methods of a class that its file does not call, with the hooks they may be."""
    text = PLUGINS.files[part.__module__].read_text("utf-8")
    for name, value in vars(part).items():
        if callable(value) and name not in hooks and not name.startswith("_"):
            meant = nearest(name, hooks)
            if meant is not None and not re.search(rf"\.{name}\b", text):
                yield name, meant


def misfit(name: str, function: object, arguments: Sequence[str]) -> str:
    """Return what is wrong with a function that gets these arguments by position, or nothing."""
    if not callable(function):
        return f"{name} = {function!r}: must be a function"
    try:
        signature = inspect.signature(function)
    except ValueError:  # compiled code may have no signature
        return ""
    try:
        signature.bind(*arguments)
    except TypeError:
        own = ", ".join(signature.parameters)
        return f"{name}({own}): must take ({', '.join(arguments)})"
    return ""
