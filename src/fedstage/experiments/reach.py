"""Base settings that no run has, because methods are laid over them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fedstage.errors import FedstageError
from fedstage.experiments.library import heirs_of, inherit
from fedstage.experiments.starts import LIKE, named_start
from fedstage.settings.experiments import Experiment, Scale
from fedstage.settings.merging import Raw, in_full, lay, merge_each
from fedstage.settings.runs import RunLength

#: The place of a setting below others: ("client", "learning_rate").
Path = tuple[str, ...]
Methods = Mapping[str, Raw]


@dataclass(frozen=True)
class Sources:
    """Where experiments and methods come from.

    `read` returns an experiment as it is written, and `load` some with what they inherit. Methods
    of the `library` have no short forms.
    """

    known: Sequence[str]
    read: Callable[[str], Experiment]
    load: Callable[[Iterable[str]], Mapping[str, Experiment]]
    library: Methods

    def heirs(self, name: str) -> Mapping[str, Experiment] | None:
        """Return the experiments that extend one, None if any that might extend it is broken."""
        try:
            return self.load(heirs_of(name, self.known, self.read))
        except FedstageError:
            return None


@dataclass(frozen=True)
class Laid:
    """A base with a method laid over it: the whole method, or only what others wrote.

    `like` are the methods that this one starts from.
    """

    method: str
    like: tuple[str, ...]
    settings: Raw
    by_others: Raw


def check_reach(sources: Sources, experiments: Mapping[str, Experiment]) -> None:
    """Refuse settings of an experiment's own base, or a scale's, that no run has.

    All methods override such a setting, at least one of them outside the experiment's own file: in
    the library, or in the experiment that it is `like`. A setting may be meant for an experiment
    that is `like` this one, so runs of these count as well. Inherited settings are never refused,
    nor are settings of a run's length: methods have them by their nature, as one-shot methods have
    one round.

    Raises
    ------
    FedstageError
        If there is such a setting; the message names it and the method whose setting wins.
    """
    for name, experiment in experiments.items():
        for scale, method, settings in written(sources.read(name)):
            if method is None:
                _check(sources, name, experiment, settings, scale)


def written(own: Experiment) -> Iterator[tuple[str | None, str | None, Raw]]:
    """Yield the scale, the method and the settings of each part of an experiment's file.

    The scale is None for settings of all scales, the method for settings of a base.
    """
    parts: list[tuple[str | None, Experiment | Scale]] = [(None, own), *own.scales.items()]
    for scale, part in parts:
        yield scale, None, part.base
        yield from ((scale, method, settings) for method, settings in part.methods.items())


def _check(
    sources: Sources, name: str, experiment: Experiment, base: Raw, scale: str | None
) -> None:
    """Refuse a base, of one scale or of all, with a setting that has no effect."""
    settings = in_full(base)
    laid = list(laid_over(sources, settings, name, experiment, scale))
    of_recipes = (path for path in _leaves(settings) if path[0] not in RunLength.model_fields)
    lost = [path for path in of_recipes if _is_lost(settings, path, laid)]
    if not lost:
        return
    heirs = sources.heirs(name)
    if heirs is None:
        return  # it may be meant for one that is broken
    for heir, inheriting in heirs.items():
        laid += laid_over(sources, settings, heir, inheriting, scale)
    for path in lost:
        if _is_lost(settings, path, laid):
            where = name if scale is None else f"{name}/{scale}"
            raise FedstageError(f"{where}: {_describe(settings, path, laid)}")


def _is_lost(base: Raw, path: Path, laid: Sequence[Laid]) -> bool:
    """Whether no run has a setting of a base, not only because the same file overrides it."""
    value = _at(base, path)
    everywhere = all(_at(method.settings, path) != value for method in laid)
    return everywhere and any(_at(method.by_others, path) != value for method in laid)


def _describe(base: Raw, path: Path, laid: Iterable[Laid]) -> str:
    value = _at(base, path)
    winner = next(method for method in laid if _at(method.by_others, path) != value)
    key = ".".join(path).removesuffix(".name")
    won = f"method {winner.method} has {_at(winner.settings, path)!r}"
    instead = f"set it in methods.{winner.method}, or leave it out"
    return f"base.{key} = {value!r}: reaches no run, because {won}; {instead}"


def laid_over(
    sources: Sources, base: Raw, name: str, experiment: Experiment, scale: str | None
) -> Iterator[Laid]:
    """Yield the methods of an experiment at a scale, or at each, laid over a base."""
    own = sources.read(name)
    parent = inherit(own.like, sources.read) if own.like else None
    for key, change in experiment.scales.items():
        if scale not in (None, key):
            continue
        inherited = sources.library if parent is None else _methods(sources.library, parent, key)
        methods = _methods(inherited, own, key)
        values = {**experiment.grid, **change.grid}.get("method")
        names = [str(name) for name in values or [experiment.base.get("method", "fedavg")]]
        for method in dict.fromkeys([*names, *_starts(names, methods)]):
            others = _over(base, methods, method, inherited)
            like = tuple(_likes(methods, method))
            yield Laid(method, like, _over(base, methods, method, methods), others)


def _methods(below: Methods, experiment: Experiment, scale: str) -> Methods:
    """Return methods with the changes that an experiment's file makes to them at a scale."""
    change = experiment.scales.get(scale, Scale())
    return merge_each(merge_each(below, experiment.methods), change.methods)


def _starts(names: Iterable[str], methods: Methods) -> Iterator[str]:
    """Yield the methods that others start from, which are trained as well."""
    for name in names:
        start = methods.get(name, {}).get("start")
        if start is not None:
            before, _ = named_start(name, start)
            yield from (before, *_starts([before], methods))


def _over(base: Raw, methods: Methods, name: str, counted: Methods) -> Raw:
    """Return a base under a method and those that it is `like`, with their `counted` settings."""
    like = methods.get(name, {}).get(LIKE)
    below = base if like is None else _over(base, methods, like, counted)
    return lay(below, counted.get(name, {}))


def _likes(methods: Methods, name: str) -> Iterator[str]:
    """Yield the methods that one starts from, down to the one that is like no other."""
    if (like := methods.get(name, {}).get(LIKE)) is not None:
        yield from (like, *_likes(methods, like))


def _leaves(settings: Raw, above: Path = ()) -> Iterator[Path]:
    """Yield the places of all values that hold no further settings."""
    for key, value in settings.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, (*above, key))
        else:
            yield (*above, key)


def _at(settings: Any, path: Path) -> Any:
    """Return the value at a place, None where there is none."""
    for key in path:
        settings = settings.get(key) if isinstance(settings, dict) else None
    return settings
