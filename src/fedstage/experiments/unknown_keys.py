"""Keys that no setting of a run has, and what they may have meant."""

from collections.abc import Collection, Iterable, Mapping
from functools import cache
from typing import Any

from fedstage.errors import FedstageError
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.settings.recipes import Recipe
from fedstage.settings.runs import RunLength
from fedstage.settings.suggestions import keys, keys_at, suggest

#: All settings of a run.
_KINDS = (Recipe, OneShotRecipe, RunLength)


def check_keys(where: str, settings: Mapping[str, Any], more: Collection[str] = ()) -> None:
    """Refuse keys that are neither a setting of any run nor one of `more`.

    Raises
    ------
    FedstageError
        If there are such keys; the message has a line for each.
    """
    unknown = [key for key in settings if key not in _known() and key not in more]
    if unknown:
        known = sorted({*_known(), *more})
        raise FedstageError(
            "\n".join(
                f"{where}: {key} = {settings[key]!r}: unknown key{_meant(key, known)}"
                for key in unknown
            )
        )


def _meant(key: str, known: Iterable[str]) -> str:
    """Return what a key may have meant: a setting inside a part, one spelt like it, or any."""
    inside = (f"{part}.{key}" for part in _known() if key in _inside(part))
    if path := next(inside, None):
        return f"; did you mean {path!r}?"
    return suggest(key, known) or f"; use one of {', '.join(known)}"


@cache
def _known() -> dict[str, None]:
    """Return the keys of all settings of runs, in the order of the classes."""
    return dict.fromkeys(key for kind in _KINDS for key in keys(kind))


def _inside(part: str) -> set[str]:
    """Return the keys that a part may have, in any of its alternatives."""
    return {key for kind in _KINDS for key in keys_at(kind, [part])} - {"name"}
