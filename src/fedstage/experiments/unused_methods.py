"""Methods in an experiment's file that no run uses."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from fedstage.experiments.reach import Methods, Sources, written
from fedstage.experiments.starts import LIKE
from fedstage.settings.experiments import Experiment
from fedstage.settings.suggestions import suggest

#: Settings, and axes of the grid, whose values are names of methods.
_OF_METHODS = ("method", "start", LIKE)
#: The number of unused methods that a line names.
_FEW = 5


def unused_methods(sources: Sources, experiments: Mapping[str, Experiment]) -> Iterator[str]:
    """Yield a line about the methods in an experiment's file that none of its runs uses.

    An example is a misspelt change of a method. A method counts as used if a run starts from it, or
    from one that is `like` it. Runs of experiments that are `like` this one count as well.
    """
    for name, experiment in experiments.items():
        used = _used(sources.library, experiment)
        own = ((method, scale) for scale, method, _ in written(sources.read(name)) if method)
        suspects: dict[str, str | None] = {}
        for method, scale in own:
            if method not in used:
                suspects.setdefault(method, scale)
        # All files are read to find heirs.
        heirs = sources.heirs(name) if suspects else None
        if heirs is None:
            continue
        used = used.union(*(_used(sources.library, heir) for heir in heirs.values()))
        unused: dict[str | None, list[str]] = {}
        for method, scale in suspects.items():
            if method not in used:
                unused.setdefault(scale, []).append(method)
        for scale, methods in unused.items():
            where = name if scale is None else f"{name}/{scale}"
            yield f"{where}: {_told(methods, {*sources.library, *used})}"


def _told(methods: Sequence[str], known: Collection[str]) -> str:
    """Return the text about unused methods; for a single one, also what it may have meant."""
    if len(methods) == 1:
        meant = "" if methods[0] in known else suggest(methods[0], known)
        return f"methods.{methods[0]}: no run uses it{meant}"
    more = f" and {len(methods) - _FEW} more" if len(methods) > _FEW else ""
    return f"methods: no run uses {', '.join(methods[:_FEW])}{more}"


def _used(library: Methods, experiment: Experiment) -> set[str]:
    """Return the methods that runs of an experiment use, or start from, at any scale."""
    found: set[str] = set()
    for change in experiment.scales.values():
        layers = (library, experiment.methods, change.methods)
        grid = {**experiment.grid, **change.grid}
        base = {"method": "fedavg", **experiment.base, **change.base}
        base["method"] = grid.get("method", base["method"])
        implied = [one for values in experiment.implies.values() for one in values.values()]
        cells = [cell.settings for cell in change.cells]
        found |= _behind(_named([base, grid, *implied, *cells]), layers)
    return found


def _behind(names: Iterable[str], layers: Sequence[Methods]) -> set[str]:
    """Return methods of these names, and methods that they are like or start from, in any layer."""
    found: set[str] = set()
    left = list(names)
    while left:
        name = left.pop()
        written = [methods[name] for methods in layers if name in methods]
        if written and name not in found:
            found.add(name)
            left += _named(written)
    return found


def _named(settings: Any, inside: bool = False) -> Iterator[str]:
    """Yield the texts below settings that are, or have, names of methods."""
    if isinstance(settings, Mapping):
        for key, value in settings.items():
            yield from _named(value, inside or str(key).rpartition(".")[2] in _OF_METHODS)
    elif isinstance(settings, list):
        for value in settings:
            yield from _named(value, inside)
    elif inside and isinstance(settings, str):
        yield settings
