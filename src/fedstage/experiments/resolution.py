"""From an experiment at a scale to its runs: settings are merged and checked."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fedstage.errors import FedstageError
from fedstage.experiments.grid import Point, check_axes, label, points, short_name
from fedstage.experiments.run_checks import (
    check_evaluated,
    check_keys,
    check_labels,
    check_results,
    check_secure,
    with_clients,
)
from fedstage.experiments.starts import LIKE, check_parts, check_start, ended_in, named_start
from fedstage.plan.data_files import AnyRecipe
from fedstage.plan.one_shot_sharing import alone
from fedstage.plan.runs import Run
from fedstage.settings.base import Settings
from fedstage.settings.cells import selects
from fedstage.settings.experiments import CellSettings, Experiment, Style
from fedstage.settings.merging import Raw, assign, in_full, lay, merge, merge_each
from fedstage.settings.one_shot import OneShot, OneShotRecipe, check_alone
from fedstage.settings.recipes import Recipe
from fedstage.settings.runs import Choose, RunLength
from fedstage.settings.scores import Axis
from fedstage.settings.validation import keys, see_list, suggest, validate

#: Keys of a method that are not settings of a recipe: how results show it, and `LIKE`.
_NO_SETTING = (*Style.model_fields, LIKE)

#: Maps a place for messages and a method's name to its settings at a point of the grid.
SettingsOf = Callable[[str, str], Raw]


def resolve(
    name: str,
    experiment: Experiment,
    scale: str,
    library: Mapping[str, Raw],
    data_folder: Path | None = None,
) -> list[Run]:
    """Return the runs of an experiment at a scale, in the order of its grid.

    Settings are merged in the order base, scale, method, settings that the grid point implies, its
    cell, grid point. Natural clients that are not given are counted in the `data_folder`.

    Raises
    ------
    FedstageError
        If a method or a setting is unknown or out of range; every run is checked.
    """
    where, change = f"{name}/{scale}", experiment.scales[scale]
    grid = {**experiment.grid, **change.grid}
    methods = merge_each(merge_each(library, experiment.methods), change.methods)
    _check_methods(name, methods)
    check_axes(where, experiment.table, grid)
    for axis in experiment.implies.keys() - grid:
        raise FedstageError(
            f"{name}: implies.{axis}: must be an axis of the grid{suggest(axis, grid)}"
        )
    # What a value implies are settings of all cells that have it.
    implied = [
        CellSettings(at={axis: value}, settings=settings)
        for axis in grid
        for value, settings in experiment.implies.get(axis, {}).items()
    ]
    base = merge(experiment.base, change.base)
    layers = _Layers(base, methods, [*implied, *change.cells], data_folder)
    runs = _runs(where, layers, points(grid))
    check_results(where, experiment.results, runs)
    check_labels(where, runs)
    return runs


@dataclass(frozen=True)
class _Layers:
    """Settings that are merged at each point of a grid; base and methods have no short forms."""

    base: Raw
    methods: Mapping[str, Raw]
    cells: Sequence[CellSettings]
    data_folder: Path | None

    def merged(self, where: str, point: Point, method: str) -> Raw:
        """Return the settings of a method at a point."""
        settings = self._below(where, point, method)
        for path, value in point.values.items():
            settings = assign(settings, path, value)
        settings.pop("method", None)
        return with_clients(f"{where}, method {method}", settings, self.data_folder)

    def _below(self, where: str, point: Point, method: str, *heirs: str) -> Raw:
        """Return the settings on which the values of the grid's axes are laid.

        A method that is `like` another starts from all settings of the other at this point,
        including its cells. `heirs` are the methods that start from this one.
        """
        if method not in self.methods:
            near = suggest(method, self.methods) or f"; {see_list('methods')}"
            raise FedstageError(f"{where}: method = {method!r}: unknown{near}")
        own = {key: value for key, value in self.methods[method].items() if key not in _NO_SETTING}
        settings, like = self.base, self.methods[method].get(LIKE)
        if like in (method, *heirs):
            raise FedstageError(f"{where}: method {method}: like = {like!r}: is like itself")
        if like is not None:
            settings = self._below(f"{where}, like", point.at("method", like), like, method, *heirs)
        settings = lay(settings, own)
        # Each axis may be selected by the name shown in tables, or by its value, in full or short.
        labels = {axis: label(value) for axis, value in point.values.items()}
        short = {axis: short_name(value) for axis, value in point.values.items()}
        names = [{"method": method, **one} for one in (point.shown, labels, short)]
        for cell in self.cells:
            if all(
                any(selects({axis: values}, one) for one in names)
                for axis, values in cell.at.items()
            ):
                settings = lay(settings, in_full(cell.settings))
        return settings


def _check_methods(where: str, methods: Mapping[str, Raw]) -> None:
    for method, settings in methods.items():
        check_keys(f"{where}/methods.{method}", settings, _NO_SETTING)
        _style(f"{where}/methods.{method}", settings)
        if not isinstance(like := settings.get(LIKE, method), str):
            raise FedstageError(f"{where}/methods.{method}: {LIKE} = {like!r}: must be a method")


def _runs(where: str, layers: _Layers, points: Iterable[Point]) -> list[Run]:
    """Return the run of each point; runs that differ only in the seed are checked once."""
    apart = any("seed" in cell.at for cell in layers.cells)
    checked: dict[Any, Run] = {}
    runs = []
    for point in points:
        seed, cell = repr(point.values.get("seed")), tuple(point.without("seed").shown.items())
        run = checked.get(cell)
        if apart or run is None or seed not in checked or run.before or run.candidates:
            run = checked[cell] = checked[seed] = _run(where, layers, point)
        else:
            run = run.with_seed(point.values["seed"])
        runs.append(run)
    return runs


def _run(where: str, layers: _Layers, point: Point) -> Run:
    method = str(point.values.get("method", layers.base.get("method", "fedavg")))

    def settings_of(where: str, method: str) -> Raw:
        """Return another method's settings; its `start` is never inherited."""
        base = {key: value for key, value in layers.base.items() if key != "start"}
        at = point.without("start").at("method", method)
        return replace(layers, base=base).merged(where, at, method)

    settings = layers.merged(where, point, method)
    run = _resolved(f"{where}, method {method}", settings, settings_of, (method,))
    *others, last = (run.candidates or (run,))[0].chain()
    check_parts(where, [*others, replace(last, axes={"method": method})], layers.methods)
    axes: dict[str, Axis] = {"method": method, "seed": run.recipe.seed}
    return replace(run, axes=axes | point.shown, style=_style(where, layers.methods[method]))


def _style(where: str, method: Raw) -> Style:
    return validate(Style, {key: method[key] for key in Style.model_fields if key in method}, where)


def _resolved(where: str, settings: Raw, settings_of: SettingsOf, methods: tuple[str, ...]) -> Run:
    """Return the run of settings, without axes; `methods` start from one another, its own last."""
    check_keys(where, settings)
    lengths = {key: settings[key] for key in set(keys(RunLength)) & settings.keys()}
    length = validate(RunLength, lengths, where)
    if length.choose is not None:
        return _choosing(where, settings, length, length.choose, settings_of, methods)
    rest = {key: value for key, value in settings.items() if key not in lengths}
    before = _before(where, settings, settings_of, methods)
    if before is not None:
        rest["start"] = ended_in(f"{where}, start", before.recipe, before.length.rounds)
    recipe = _recipe(where, rest, length)
    if before is not None:
        check_start(where, recipe, before.recipe)
    check_evaluated(where, recipe, length)
    check_secure(where, rest, recipe, length)
    return Run({}, recipe, length, before=before)


def _before(
    where: str, settings: Raw, settings_of: SettingsOf, methods: tuple[str, ...]
) -> Run | None:
    """Return the run that a run starts from, if any, which is trained but not evaluated."""
    start = settings.get("start")
    if start is None:
        return None
    method, changes = named_start(where, start)
    if method in methods:
        raise FedstageError(f"{where}: start: method = {method!r}: starts from itself")
    other = merge(settings_of(f"{where}, start", method), changes)
    where = f"{where}, start {method}"
    if other.get("choose") is not None:
        raise FedstageError(f"{where}: choose: only for a run that does not lend its model")
    if other.get("training") == "one_shot":
        other["rounds"] = 1
    for key in ("evaluate", "evaluate_every", "role"):
        other.pop(key, None)
    run = _resolved(where, other, settings_of, (*methods, method))
    only_last = run.length.model_copy(update={"evaluate_every": run.length.rounds})
    return replace(run, length=only_last, axes={"method": method, "seed": run.recipe.seed})


def _choosing(
    where: str,
    settings: Raw,
    length: RunLength,
    choose: Choose,
    settings_of: SettingsOf,
    methods: tuple[str, ...],
) -> Run:
    """Return a run that takes the best of its candidates, one for every combination of values."""

    def candidates(where: str, settings: Raw) -> tuple[Run, ...]:
        tried = []
        for point in points(choose.among):
            changed = {**settings, "choose": None}
            for path, value in point.values.items():
                changed = assign(changed, path, value)
            run = _resolved(f"{where}, choose", changed, settings_of, methods)
            tried.append(replace(run, axes=point.shown))
        return tuple(tried)

    tried = compared = candidates(where, settings)
    if choose.compare_with:
        changed = merge(settings, choose.compare_with)
        compared = candidates(f"{where}, compare_with", changed)
    if not all(run.recipe.validation for run in compared):
        raise FedstageError(f"{where}: validation = 0: choose needs more than 0")
    scored = tuple(run.in_role("validation") for run in compared)
    return Run({}, tried[0].recipe, length, tried, scored)


def _recipe(where: str, settings: Raw, length: RunLength) -> AnyRecipe:
    """Return the recipe that a run trains, from the settings that its kind of recipe has."""
    if length.training == "one_shot":
        if length.rounds != 1:
            raise FedstageError(f"{where}: rounds = {length.rounds}: training = one_shot has 1")
        return validate(OneShotRecipe, _without(settings, Recipe, OneShotRecipe), where)
    recipe = validate(Recipe, _without(settings, OneShotRecipe, Recipe), where)
    # Settings shared by rounds and one shot belong to the recipe.
    apart = set(keys(OneShot)) - set(keys(Recipe))
    own = validate(OneShot, {key: settings[key] for key in apart & settings.keys()}, where)
    for fault in check_alone(own, recipe) if length.training == "alone" else ():
        raise FedstageError(f"{where}: {fault}")
    if length.training == "federated":
        return recipe
    if recipe.privacy is not None:
        raise FedstageError(
            f"{where}: privacy: must be null with training = {length.training}, whose models have "
            "no noise; only federated and one_shot do"
        )
    if length.training == "core" and recipe.core is None:
        raise FedstageError(f"{where}: core = null: training = core needs one")
    on = {"pooled": length.training == "pooled", "on_core": length.training == "core"}
    return alone(recipe, length.rounds, **on, own=own)


def _without(settings: Raw, other: type[Settings], kind: type[Settings]) -> Raw:
    """Return settings without the ones that only another kind of recipe has."""
    foreign = set(keys(other)) - set(keys(kind))
    return {key: value for key, value in settings.items() if key not in foreign}
