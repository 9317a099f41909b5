"""Checks that a plugin's class overrides hooks of its base, with their names and arguments."""

import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Any

from fedstage.settings.registry import PLUGINS
from fedstage.settings.signatures import misfit, parameters_of
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
    if not own:
        return
    hooks = {name for part in built_in for name in vars(part) if not name.startswith("_")}
    for part in own:
        for name, meant in _misspelt(part, hooks):
            yield f"{kind.__name__}.{name}: no such hook; did you mean {meant!r}?"
        yield from _misfits(kind, part, built_in[0], hooks)
    if not any(vars(part).keys() & {*hooks, "__init__"} for part in own):
        yield f"{kind.__name__}: overrides nothing of its base, {built_in[0].__name__}"


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


def _misfits(kind: type[Any], part: type[Any], base: type[Any], hooks: set[str]) -> Iterator[str]:
    """Yield the hooks of a class that do not take the arguments of the base's hooks."""
    for name, own in vars(part).items():
        expected = parameters_of(getattr(base, name, None)) if name in hooks else []
        if inspect.isfunction(own) and expected:
            fault = misfit(f"{kind.__name__}.{name}", own, expected)
            yield from [fault] if fault else []


def _misspelt(part: type[Any], hooks: set[str]) -> Iterator[tuple[str, str]]:
    """Yield the methods of a class that its file does not call, with the hooks they may be."""
    text = PLUGINS.files[part.__module__].read_text("utf-8")
    for name, value in vars(part).items():
        if callable(value) and name not in hooks and not name.startswith("_"):
            meant = nearest(name, hooks)
            if meant is not None and not re.search(rf"\.{name}\b", text):
                yield name, meant
