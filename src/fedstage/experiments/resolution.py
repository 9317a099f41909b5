"""From an experiment at a scale to its runs: settings laid over one another, and checked."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from fedstage.errors import FedstageError
from fedstage.experiments.grid import Point, label, points, short_name
from fedstage.experiments.starts import check_start, ended_in, named_start
from fedstage.plan.runs import Choose, Run, RunLength
from fedstage.plan.sharing import alone
from fedstage.results.cells import selects
from fedstage.settings.base import Settings
from fedstage.settings.data import WITH_OWN_TEST
from fedstage.settings.experiments import OF_ANY_RUN, CellSettings, Experiment, Result, Scale, Table
from fedstage.settings.lines import Line, LocalLine
from fedstage.settings.merging import Raw, assign, in_full, lay, merge, merge_each
from fedstage.settings.one_shot import OneShot, OneShotLine
from fedstage.settings.scores import Axis, Cells
from fedstage.settings.validation import validate

#: From a place for messages and a method's name to its settings at a point of the grid.
Laid = Callable[[str, str], Raw]

#: From an axis and a value of it to the settings that come with it.
Implied = Mapping[str, Mapping[str | int | float, Raw]]


def resolve(name: str, experiment: Experiment, scale: str, library: Mapping[str, Raw]) -> list[Run]:
    """Return the runs of an experiment at a scale, in the order of its grid.

    Settings are laid over one another in the order base, scale, method, what the grid point
    implies, those of its cell, grid point.

    Raises
    ------
    FedstageError
        If a method or a setting is unknown or out of range; every run is checked.
    """
    change = experiment.scales[scale] or Scale()
    base = merge(experiment.base, change.base)
    grid = {**experiment.grid, **change.grid}
    methods = merge_each(merge_each(library, experiment.methods), change.methods)
    _check_methods(name, methods)
    _check_axes(f"{name}/{scale}", experiment.table, grid)
    for axis in experiment.implies.keys() - grid:
        raise FedstageError(f"{name}: implies.{axis}: must be an axis of the grid")
    where, implies = f"{name}/{scale}", _implied_in_full(experiment.implies)
    cells = [one.model_copy(update={"settings": in_full(one.settings)}) for one in change.cells]
    runs = [_run(where, base, methods, implies, cells, point) for point in points(grid)]
    _check_results(where, experiment.results, runs)
    return runs


def _implied_in_full(implies: Implied) -> Implied:
    return {
        axis: {value: in_full(settings) for value, settings in of_values.items()}
        for axis, of_values in implies.items()
    }


def _check_results(where: str, results: Iterable[Result], runs: Iterable[Run]) -> None:
    """Refuse runs without rounds where a result is about rounds."""
    about_rounds = [result for result in results if result not in OF_ANY_RUN]
    for run in runs if about_rounds else ():
        if not isinstance(run.line, Line):
            raise FedstageError(
                f"{where}: results = {about_rounds[0]!r}: method {run.axes['method']} has training "
                f"= {run.length.training!r}; only federated"
            )


def _check_methods(where: str, methods: Mapping[str, Raw]) -> None:
    known = {*_keys(Line), *_keys(OneShotLine), *_keys(RunLength)}
    for method, settings in methods.items():
        for key in settings.keys() - known:
            raise FedstageError(f"{where}/methods.{method}: {key} = {settings[key]!r}: unknown key")


def _check_axes(where: str, table: Table, grid: Mapping[str, Any]) -> None:
    axes = [*table.rows, *table.columns]
    allowed = {"method", *grid} - {"seed"}
    for axis in axes:
        if axis not in allowed:
            raise FedstageError(f"{where}: table: {axis!r}: must be one of {', '.join(allowed)}")
    if table.over is not None and table.over not in axes:
        raise FedstageError(f"{where}: table.over = {table.over!r}: use one of {', '.join(axes)}")
    for axis, values in grid.items():
        if axis in ("method", "seed") and not isinstance(values, list):
            raise FedstageError(f"{where}: grid.{axis}: must be a list; names are of other axes")
        if axis not in axes and axis != "seed" and len(values) > 1:
            raise FedstageError(f"{where}: table: {axis}: make it one of the rows or columns")


def _run(
    where: str,
    base: Raw,
    methods: Mapping[str, Raw],
    implies: Implied,
    cells: Sequence[CellSettings],
    point: Point,
) -> Run:
    method = str(point.values.get("method", base.get("method", "fedavg")))

    def laid(where: str, method: str) -> Raw:
        """Return another method's settings, for which a start is only what it says itself."""
        at = point.without("start").at("method", method)
        common = {key: value for key, value in base.items() if key != "start"}
        return _laid(where, common, methods, implies, cells, at, method)

    settings = _laid(where, base, methods, implies, cells, point, method)
    run = _resolved(f"{where}, method {method}", settings, laid, (method,))
    axes: dict[str, Axis] = {"method": method, "seed": run.line.seed}
    return replace(run, axes=axes | point.shown)


def _laid(
    where: str,
    base: Raw,
    methods: Mapping[str, Raw],
    implies: Implied,
    cells: Sequence[CellSettings],
    point: Point,
    method: str,
) -> Raw:
    """Return the settings of a method at a point of the grid; all are given in full."""
    if method not in methods:
        known = ", ".join(sorted(methods))
        raise FedstageError(f"{where}: method = {method!r}: unknown; use one of {known}")
    settings = lay(base, methods[method])
    for path, value in point.values.items():
        if path in implies:
            settings = lay(settings, _implied(implies[path], point.shown[path], value))
    names = _names(point, method) if cells else []
    for cell in cells:
        if _is_at(names, cell.at):
            settings = lay(settings, cell.settings)
    for path, value in point.values.items():
        settings = assign(settings, path, value)
    settings.pop("method", None)
    return settings


def _names(point: Point, method: str) -> list[dict[str, Axis]]:
    """Return the values of a point as tables show them, and as they are called without names."""
    called = {axis: label(value) for axis, value in point.values.items()}
    return [{"method": method, **point.shown}, {"method": method, **called}]


def _is_at(names: Sequence[Mapping[str, Axis]], at: Cells) -> bool:
    """Whether a point is one of the cells, each of its axes by one name or another."""
    return all(
        any(selects({axis: wanted}, known) for known in names) for axis, wanted in at.items()
    )


def _implied(implies: Mapping[str | int | float, Raw], name: Any, value: Any) -> Raw:
    """Return what comes with a value of an axis, by its name or that of the choice that it is."""
    return implies.get(name, implies.get(short_name(value), {}))


def _resolved(where: str, settings: Raw, laid: Laid, methods: tuple[str, ...]) -> Run:
    """Return the run of settings, without axes.

    Parameters
    ----------
    laid : callable
        From a method's name (and where it stands) to its settings at the same point of the grid.
    methods : tuple of str
        The run's method, behind those that start from it.
    """
    lengths = {key: settings[key] for key in _keys(RunLength) & settings.keys()}
    length = validate(RunLength, lengths, where)
    candidates = _candidates(where, settings, length.choose, laid, methods)
    if candidates:
        return Run({}, candidates[0].line, length, candidates)
    rest = {key: value for key, value in settings.items() if key not in lengths}
    before = _before(where, settings, laid, methods)
    if before is not None:
        rest["start"] = ended_in(f"{where}, start", before.line, before.length.rounds)
    line = _line(where, rest, length)
    if before is not None:
        check_start(where, line, before.line)
    if length.role == "validation" and not line.validation:
        raise FedstageError(f"{where}: validation = 0: role = 'validation' needs more than 0")
    if length.role == "test_own" and line.data.name not in WITH_OWN_TEST:
        raise FedstageError(
            f"{where}: role = 'test_own': only for data = {' or '.join(WITH_OWN_TEST)}, and here "
            f"data = {line.data.name}"
        )
    _check_client(where, line, length)
    return Run({}, line, length, before=before)


def _check_client(where: str, line: Line | LocalLine | OneShotLine, length: RunLength) -> None:
    """Refuse a client to be scored that has no model of its own."""
    if length.evaluate_client is None:
        return
    told = f"{where}: evaluate_client = {length.evaluate_client}"
    if length.training != "alone":
        raise FedstageError(f"{told}: only for training = alone, not {length.training}")
    if length.evaluate_client >= line.clients:
        last = f"the last of clients = {line.clients}"
        raise FedstageError(f"{told}: at most {line.clients - 1}, {last}")


def _before(where: str, settings: Raw, laid: Laid, methods: tuple[str, ...]) -> Run | None:
    """Return the run that a run starts from, if any: it is trained, and not evaluated."""
    start = settings.get("start")
    if start is None:
        return None
    method, changes = named_start(where, start)
    if method in methods:
        raise FedstageError(f"{where}: start: method = {method!r}: starts from itself")
    other = merge(laid(f"{where}, start", method), changes)
    where = f"{where}, start {method}"
    if other.get("choose") is not None:
        raise FedstageError(f"{where}: choose: only for a run that does not lend its model")
    if other.get("training") == "one_shot":
        other["rounds"] = 1
    scored = {"evaluate", "evaluate_every", "role"}
    kept = {key: value for key, value in other.items() if key not in scored}
    run = _resolved(where, kept, laid, (*methods, method))
    only_last = run.length.model_copy(update={"evaluate_every": run.length.rounds})
    return replace(run, length=only_last, axes={"method": method, "seed": run.line.seed})


def _candidates(
    where: str, settings: Raw, choose: Choose | None, laid: Laid, methods: tuple[str, ...]
) -> tuple[Run, ...]:
    """Return a run for every combination of the values that a run chooses among."""
    if choose is None:
        return ()
    tried = []
    for values in product(*choose.among.values()):
        point = dict(zip(choose.among, values, strict=True))
        changed: Raw = {**settings, "choose": None}
        for path, value in point.items():
            changed = assign(changed, path, value)
        run = _resolved(f"{where}, choose", changed, laid, methods)
        if not run.line.validation:
            raise FedstageError(f"{where}: validation = 0: choose needs more than 0")
        axes = {path: label(value) for path, value in point.items()}
        tried.append(replace(run, axes=axes))
    return tuple(tried)


def _line(where: str, settings: Raw, length: RunLength) -> Line | LocalLine | OneShotLine:
    """Return what a run trains.

    An experiment's base may hold settings of both kinds; each run takes those of its own.
    """
    own = {key: value for key, value in settings.items() if key in _keys(OneShot)}
    if length.training == "one_shot":
        if length.rounds != 1:
            raise FedstageError(f"{where}: rounds = {length.rounds}: training = one_shot has 1")
        return validate(OneShotLine, _without(settings, Line, OneShotLine), where)
    line = validate(Line, _without(settings, OneShotLine, Line), where)
    apart = validate(OneShot, own, where)
    if length.training == "federated":
        return line
    return alone(line, length.rounds, pooled=length.training == "pooled", own=apart)


def _without(settings: Raw, other: type[Settings], kind: type[Settings]) -> Raw:
    """Return settings without those that only another kind of line has."""
    foreign = _keys(other) - _keys(kind)
    return {key: value for key, value in settings.items() if key not in foreign}


def _keys(kind: type[Settings]) -> set[str]:
    """Return the keys that settings have in YAML."""
    return {field.alias or name for name, field in kind.model_fields.items()}
