"""Checks that a function of a plugin takes the arguments with which it is called."""

import inspect
from collections.abc import Sequence


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


def parameters_of(function: object) -> list[str]:
    """Return the names of a function's parameters, or no names for any other object."""
    return list(inspect.signature(function).parameters) if inspect.isfunction(function) else []
