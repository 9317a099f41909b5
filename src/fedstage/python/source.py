"""A model as a plugin file: its source, and that of all it needs, so that nothing is pickled."""

import ast
import builtins
import inspect
import linecache
import subprocess
import sys
import typing
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from symtable import SymbolTable, symtable
from textwrap import dedent
from types import FunctionType, ModuleType
from typing import Any

from fedstage.errors import FedstageError

_HEAD = '''\
"""The model of the study, written by fedstage.run: change it there."""

import typing

import fedstage.settings.models
'''
_PLUGIN = '''

class {name}Settings(fedstage.settings.models.Architecture):
    """The study's model."""

    samples: typing.ClassVar = ("images", "features")
    name: typing.Literal["{name}"]


def network(settings, shape, classes):
    return {name}({arguments})
'''


def plugin(model: Callable[..., Any]) -> str:
    """Return the plugin file of a class of modules, or of a function that returns one.

    Either takes no arguments, or the shape of a sample and the number of classes.

    Raises
    ------
    FedstageError
        If it takes others, or is not defined by itself: the message has the name that it lacks.
    """
    name = getattr(model, "__name__", "")
    if not (isinstance(model, type | FunctionType) and name.isidentifier()):
        allowed = "a class of modules, a named function that returns one, or an architecture"
        raise FedstageError(f"model = {model!r}: must be {allowed}")
    signature = inspect.signature(model)
    needed = [
        one
        for one in signature.parameters.values()
        if one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
    ]
    if len(needed) not in (0, 2):
        raise FedstageError(f"model: {name}{signature}: must need no arguments, or shape, classes")
    parts = [_HEAD]
    _take(
        name, model, parts, {"network": None, "typing": typing, "fedstage": sys.modules["fedstage"]}
    )
    return "\n\n".join(parts) + _PLUGIN.format(
        name=name, arguments="shape, classes" if needed else ""
    )


def _take(name: str, value: Any, parts: list[str], taken: dict[str, Any]) -> None:
    """Add to `parts` what gives a name its value, after what that needs, unless it is `taken`."""
    if name in taken:
        if taken[name] is not value:
            raise FedstageError(f"model: the name {name!r} has two meanings; rename one of them")
        return
    taken[name] = value
    own = getattr(value, "__name__", name)
    renamed = "" if own == name else f" as {name}"
    if isinstance(value, ModuleType) and _is_installed(own.partition(".")[0]):
        parts.append(f"import {own}{renamed}")
    elif home := _home(value):
        parts.append(f"from {home} import {own}{renamed}")
    elif isinstance(value, type | FunctionType) and renamed:
        _take(own, value, parts, taken)
        parts.append(f"{name} = {own}")
    elif isinstance(value, type | FunctionType):
        text = _definition(value)
        known = getattr(value, "__globals__", None) or vars(sys.modules[value.__module__])
        for used in sorted(_globals_of(symtable(text, name, "exec")) - {name}):
            if used in known:
                _take(used, known[used], parts, taken)
            elif not hasattr(builtins, used):
                raise FedstageError(f"model: {name} uses {used!r}, which is not defined")
        parts.append(text)
    elif _is_literal(value):
        parts.append(f"{name} = {value!r}")
    else:
        raise FedstageError(
            f"model: the name {name!r} cannot be taken along: it is neither a class or function, "
            f"nor a literal, nor of an installed module, but of type {type(value).__name__}"
        )


@cache
def _is_installed(module: str) -> bool:
    """Whether jobs can import a module: another Python finds it, which is not in its folder."""
    look = f"import sys, importlib.util as u; sys.exit(u.find_spec({module!r}) is None)"
    command = [sys.executable, "-P", "-c", look]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _home(value: Any) -> str | None:
    """Return the installed module that has a class or function, or None."""
    module, name = (str(getattr(value, key, "")) for key in ("__module__", "__name__"))
    whole = bool(name) and _is_installed(module.partition(".")[0])
    return module if whole and getattr(import_module(module), name, None) is value else None


def _is_literal(value: Any) -> bool:
    with suppress(ValueError, SyntaxError, TypeError):
        return bool(ast.literal_eval(repr(value)) == value)
    return False


def _definition(value: type | FunctionType) -> str:
    """Return the source of a class or function, also of a cell of a notebook."""
    name = value.__name__
    if "<locals>" in value.__qualname__:
        raise FedstageError(f"model: {name} is defined in a function; define it outside")
    with suppress(OSError, TypeError):
        return dedent(inspect.getsource(value)).rstrip()
    # Python finds no class of a cell, which is in no file, but it finds the code of its methods.
    for member in vars(value).values():
        if isinstance(member, FunctionType):
            lines = linecache.getlines(member.__code__.co_filename)
            for node in ast.parse("".join(lines)).body:
                if isinstance(node, ast.ClassDef) and node.name == name:
                    first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
                    return "".join(lines[first - 1 : node.end_lineno]).rstrip()
    raise FedstageError(f"model: the source of {name} is not known; write it in a file")


def _globals_of(table: SymbolTable) -> set[str]:
    """Return the names that a definition takes from its module, or from builtins."""
    own = {one.get_name() for one in table.get_symbols() if one.is_global() and one.is_referenced()}
    return own.union(*map(_globals_of, table.get_children()))
