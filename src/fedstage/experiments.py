"""Experiments: a base, a grid and scales, resolved into runs."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import yaml
from pydantic import Field, model_validator

from fedstage.cells import as_text, names_of, selects
from fedstage.claims.settings import Claim
from fedstage.config import (
    SECONDS,
    WITH_OWN_TEST,
    Axis,
    Cells,
    Count,
    Evaluated,
    GlobalModel,
    Line,
    LocalLine,
    Metric,
    Name,
    OneShot,
    OneShotLine,
    Positive,
    Role,
    Settings,
)
from fedstage.errors import FedstageError
from fedstage.lines import alone
from fedstage.merging import Raw, assign, in_full, lay, merge, plain
from fedstage.published.settings import Published
from fedstage.simulation.settings import Simulation
from fedstage.starts import check_start, ended_in, named_start
from fedstage.validation import validate


class Table(Settings):
    """Which axes of the grid are the rows and the columns of the result table, and of what it is.

    `metric` is what published numbers and claims are about, unless a claim names another.
    `published` says where the numbers of a paper stand that its cells are compared with. `also` has
    further columns: `maximum` is what some released code reports, the highest of all rounds.
    """

    rows: list[str] = ["method"]
    columns: list[str] = []
    metric: Metric = "top1_accuracy"
    published: Published | None = None
    also: list[Literal["maximum"]] = []

    @model_validator(mode="before")
    @classmethod
    def _published_of_the_same(cls, raw: Any) -> Any:
        """Take the published numbers of the table's metric, where no other is named."""
        if not (isinstance(raw, Mapping) and isinstance(raw.get("published"), Mapping)):
            return raw
        metric = {"metric": raw["metric"]} if "metric" in raw else {}
        return {**raw, "published": {**metric, **raw["published"]}}


#: What an experiment can make; of `MEASURED` its runs have to be trained.
Result = Literal["table", "figures", "communication", "properties", "simulation", "round_times"]
MEASURED: frozenset[Result] = frozenset({"table", "figures", "communication", "round_times"})
#: What can be made of runs of any kind; the others are about rounds.
OF_ANY_RUN: frozenset[Result] = frozenset({"table", "figures", "communication"})


class Communication(Settings):
    """Beside what an experiment's runs communicate: what is published, and a run to keep up with.

    `published` is of the memory that predicting needs. `reach` are the cells whose accuracy other
    runs are to reach: those of the same seed that agree with them on all axes which it does not
    name.
    """

    published: Published | None = None
    reach: Annotated[Cells, Field(min_length=1)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _published_of_memory(cls, raw: Any) -> Any:
        """Take the published numbers of memory, where no other are named."""
        if not (isinstance(raw, Mapping) and isinstance(raw.get("published"), Mapping)):
            return raw
        return {**raw, "published": {"metric": "memory_mib", **raw["published"]}}


class CellSettings(Settings):
    """Settings of some cells of the grid: of those that have these values, on all these axes."""

    at: Annotated[Cells, Field(min_length=1)]
    settings: Raw


class Scale(Settings):
    """What a scale changes in the base and in methods, and which axes of the grid it replaces.

    `cells` are settings that depend on several axes, such as a rate that was tuned for each method
    and partition.
    """

    base: Raw = {}
    methods: dict[str, Raw] = {}
    grid: dict[str, Annotated[list[Any], Field(min_length=1)]] = {}
    cells: list[CellSettings] = []


class Experiment(Settings):
    """An experiment file.

    `methods` adds to the library of methods, or changes them here. `like` names another experiment
    whose base and methods this one starts from, and whose scales of the same names. `implies` says
    what else comes with a value of an axis: axis -> value -> settings. `results` says what is made
    of the runs; `properties` and `simulation` follow from settings alone, so that nothing is
    trained for them.
    """

    title: str
    like: str | None = None
    base: Raw = {}
    grid: dict[str, Annotated[list[Any], Field(min_length=1)]] = {}
    methods: dict[str, Raw] = {}
    implies: dict[str, dict[str | int | float, Raw]] = {}
    table: Table = Table()
    results: Annotated[list[Result], Field(min_length=1)] = ["table", "figures"]
    communication: Communication = Communication()
    simulation: Simulation = Simulation()
    scales: Annotated[dict[Name, Scale | None], Field(min_length=1)]

    @model_validator(mode="after")
    def _has_what_its_table_is_about(self) -> "Experiment":
        if self.table.metric in SECONDS and (
            "round_times" not in self.results or OF_ANY_RUN & set(self.results)
        ):
            raise ValueError(
                f"table.metric = {self.table.metric!r}: needs results = [round_times], and neither "
                "table nor figures, nor communication, which are of accuracies"
            )
        return self


class Execution(Settings):
    """How the work is cut into jobs and who does it; results are the same bytes.

    `workers` (by default one a core) and `workers_per_gpu` are the warm processes of a machine,
    `clients_per_gpu` is how many clients of one job train side by side on its GPU, `gpu` is what a
    job asks the scheduler for where `numerics.device` is auto, and `timeout` the seconds after
    which a stage is taken for hung (by default a day).
    """

    granularity: Literal["participant", "round", "segment"] = "participant"
    segment_rounds: Positive = 25
    clients_per_job: Positive | Literal["all"] = 1
    workers: Positive | None = None
    workers_per_gpu: Positive = 1
    clients_per_gpu: Positive = 1
    gpu: Count = 0
    timeout: Positive | None = None

    @model_validator(mode="after")
    def _one_way_of_joining(self) -> "Execution":
        if self.clients_per_job != 1 and self.granularity != "participant":
            raise ValueError(
                f"clients_per_job = {self.clients_per_job!r}: only with granularity = "
                f"'participant', because a {self.granularity} trains all clients of a group"
            )
        return self


#: From a place for messages and a method's name to its settings at a point of the grid.
Laid = Callable[[str, str], Raw]

#: Which files of a round stay on disk: all; all but the updates that no job reads; what jobs read.
Keep = Literal["all", "models", "needed"]


class Config(Settings):
    """config.yaml: experiments written in it, what to make, and what only steers the work."""

    targets: Annotated[list[str], Field(min_length=1)]
    experiments: dict[Name, Experiment] = {}
    claims: list[Claim] = []
    data_folder: str | None = None
    keep: Keep = "all"
    state_every: Positive = 10
    execution: Execution = Execution()

    @model_validator(mode="after")
    def _files_to_drop(self) -> "Config":
        if self.keep == "needed" and self.execution.granularity == "participant":
            raise ValueError(
                "keep = 'needed': needs execution.granularity = 'round' or 'segment', because "
                "'participant' hands every file on from one job to another; or use 'models'"
            )
        return self


class Choose(Settings):
    """Take those of several values with which a run is most accurate, on validation samples.

    `among` has the candidates of each setting, by its path; of several settings, all combinations
    are tried. The first of equals is taken. The test set cannot choose.
    """

    among: Annotated[dict[str, Annotated[list[Any], Field(min_length=1)]], Field(min_length=1)]
    on: Literal["validation"] = "validation"


class RunLength(Settings):
    """What a run has beside its line: not part of the line's identity.

    Clients that train alone are scored as the mean over all, or `evaluate_client` is by itself.
    """

    rounds: Annotated[int, Field(ge=1, le=9900)]  # four digits in names of files
    evaluate_every: Positive = 1
    evaluate: Evaluated = GlobalModel(name="global_model")
    evaluate_client: Count | None = None
    role: Role = "test"
    training: Literal["federated", "alone", "pooled", "one_shot"] = "federated"
    choose: Choose | None = None


@dataclass(frozen=True)
class Run:
    """One point of an experiment's grid.

    Attributes
    ----------
    axes : dict
        The values of the grid's axes at this point, and always `method` and `seed`.
    line : Line, LocalLine or OneShotLine
        What is trained.
    length : RunLength
        How long, and what is evaluated.
    candidates : tuple of Run
        Of a run that chooses among values, the runs with each, the first of which lends it its
        line; their axes are the values.
    before : Run, optional
        What the line starts from, where that was trained before. It is not evaluated.
    """

    axes: dict[str, Axis]
    line: Line | LocalLine | OneShotLine
    length: RunLength
    candidates: tuple["Run", ...] = ()
    before: "Run | None" = None

    def evaluated(self) -> list["Run"]:
        """Return the runs whose metrics are needed: itself, or each candidate in both roles."""
        if not self.candidates:
            return [self]
        roles = dict.fromkeys(("validation", self.length.role))
        return [one.in_role(role) for role in roles for one in self.candidates]

    def trained(self) -> list["Run"]:
        """Return the runs whose lines are trained: those that are evaluated, and their starts."""
        return [part for one in self.evaluated() for part in one.chain()]

    def chain(self) -> list["Run"]:
        """Return the runs that go on from one another, the first one first and this one last."""
        return [*(self.before.chain() if self.before else ()), self]

    def in_role(self, role: Role) -> "Run":
        """Return the same run, scored on other samples."""
        return replace(self, length=self.length.model_copy(update={"role": role}))


#: libyaml's, ten times as fast, where PyYAML was built with it; both refuse Python objects.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def load_yaml(path: Path) -> Raw:
    """Read a YAML file that holds a mapping.

    Raises
    ------
    FedstageError
        If the file is not valid YAML, or not a mapping.
    """
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER)
    except FileNotFoundError:
        raise FedstageError(f"{path}: No such file") from None
    except UnicodeDecodeError as error:
        raise FedstageError(f"{path}: not UTF-8 text: {error}") from None
    except yaml.YAMLError as error:
        detail = " ".join(str(error).split())
        raise FedstageError(f"{path}: not valid YAML: {detail}") from None
    if not isinstance(content, dict):
        raise FedstageError(f"{path}: must be a mapping of keys to values")
    return content


def load_experiments(config: Config, folder: Path) -> dict[str, Experiment]:
    """Return all experiments: those of config.yaml and one for every file in `folder`."""
    experiments = dict(config.experiments)
    for path in sorted(folder.glob("*.yaml")):
        if path.stem in experiments:
            raise FedstageError(f"experiments.{path.stem}: is also {path}; rename one of them")
        experiments[path.stem] = validate(Experiment, load_yaml(path), str(path))
    for target in config.targets:
        _check_likeness(target.partition("/")[0], experiments)
    for name in experiments:
        _check_cells(name, experiments)
    # One that is like an experiment of a config.yaml which is not in use has nothing to start from.
    usable = [name for name, one in experiments.items() if one.like in (None, *experiments)]
    return {name: _inherit(name, experiments) for name in usable}


def _check_likeness(name: str, experiments: Mapping[str, Experiment]) -> None:
    like = experiments[name].like if name in experiments else None
    if like is not None and like not in experiments:
        known = ", ".join(key for key, value in experiments.items() if value.like is None)
        raise FedstageError(f"{name}: like = {like!r}: unknown; use one of {known}")


def _check_cells(name: str, experiments: Mapping[str, Experiment]) -> None:
    """Refuse settings of cells that neither the experiment nor one that is like it has."""
    known = _values_of_axes(one for key, one in experiments.items() if name in (key, one.like))
    for scale, change in experiments[name].scales.items():
        for number, cell in enumerate(change.cells if change else ()):
            _check_cell(f"{name}/{scale}: cells.{number}.at", cell.at, known)


def _check_cell(where: str, at: Cells, known: Mapping[str, Mapping[str, None]]) -> None:
    for axis, wanted in at.items():
        if axis not in known:
            raise FedstageError(f"{where}.{axis}: no axis; use one of {', '.join(known)}")
        for value in wanted if isinstance(wanted, list) else [wanted]:
            if as_text(value) not in known[axis]:
                told = ", ".join(known[axis])
                raise FedstageError(f"{where}.{axis} = {value!r}: use one of {told}")


def _values_of_axes(family: Iterable[Experiment]) -> dict[str, dict[str, None]]:
    """Return, in order, the texts that name the values of all axes, at all scales."""
    known: dict[str, dict[str, None]] = {}
    grids = (
        part.grid for one in family for part in (one, *one.scales.values()) if part is not None
    )
    for grid in grids:
        for axis, values in grid.items():
            texts = (text for value in values for text in names_of(axis, _label(plain("", value))))
            known.setdefault(axis, {}).update(dict.fromkeys(texts))
    return known


def _inherit(name: str, experiments: Mapping[str, Experiment]) -> Experiment:
    """Lay an experiment over the one that it is like."""
    experiment = experiments[name]
    if experiment.like is None:
        return experiment
    parent = experiments[experiment.like]
    if parent.like is not None:
        known = ", ".join(key for key, value in experiments.items() if value.like is None)
        raise FedstageError(f"{name}: like = {experiment.like!r}: must be one of {known}")
    methods = _merge_methods(parent.methods, experiment.methods)
    base, own = merge(parent.base, experiment.base), experiment.implies
    scales = {
        name: _over(parent.scales.get(name), scale) for name, scale in experiment.scales.items()
    }
    implied = {**parent.implies, **experiment.implies}
    implies = {axis: implied[axis] for axis in implied if axis in experiment.grid or axis in own}
    update = {"base": base, "methods": methods, "scales": scales, "implies": implies}
    return experiment.model_copy(update=update)


def _over(parent: Scale | None, scale: Scale | None) -> Scale:
    """Lay a scale over that of the same name; the axes of the grid are each experiment's own."""
    below, above = parent or Scale(), scale or Scale()
    methods = _merge_methods(below.methods, above.methods)
    cells = [*below.cells, *above.cells]
    return Scale(base=merge(below.base, above.base), methods=methods, grid=above.grid, cells=cells)


def _merge_methods(below: Mapping[str, Raw], above: Mapping[str, Raw]) -> dict[str, Raw]:
    """Lay methods over methods of the same names."""
    names = {**below, **above}
    return {name: merge(below.get(name, {}), above.get(name, {})) for name in names}


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
    methods = _merge_methods(_merge_methods(library, experiment.methods), change.methods)
    _check_methods(name, methods)
    _check_table(f"{name}/{scale}", experiment.table, grid)
    for axis in experiment.implies.keys() - grid:
        raise FedstageError(f"{name}: implies.{axis}: must be an axis of the grid")
    points = (dict(zip(grid, values, strict=True)) for values in product(*grid.values()))
    where, implies = f"{name}/{scale}", experiment.implies
    runs = [_run(where, base, methods, implies, change.cells, point) for point in points]
    _check_results(where, experiment.results, runs)
    return runs


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


def _check_table(where: str, table: Table, grid: Mapping[str, Any]) -> None:
    axes = [*table.rows, *table.columns]
    allowed = {"method", *grid} - {"seed"}
    for axis in axes:
        if axis not in allowed:
            raise FedstageError(f"{where}: table: {axis!r}: must be one of {', '.join(allowed)}")
    for axis, values in grid.items():
        if axis not in axes and axis != "seed" and len(values) > 1:
            raise FedstageError(f"{where}: table: {axis}: make it one of the rows or columns")


def _run(
    where: str,
    base: Raw,
    methods: Mapping[str, Raw],
    implies: Mapping[str, Mapping[str | int | float, Raw]],
    cells: Iterable[CellSettings],
    point: dict[str, Any],
) -> Run:
    method = str(point.get("method", base.get("method", "fedavg")))

    def laid(where: str, method: str) -> Raw:
        """Return another method's settings, for which a start is only what it says itself."""
        at = {key: value for key, value in point.items() if key.partition(".")[0] != "start"}
        at |= {"method": method} if "method" in point else {}
        common = {key: value for key, value in base.items() if key != "start"}
        return _laid(where, common, methods, implies, cells, at, method)

    settings = _laid(where, base, methods, implies, cells, point, method)
    run = _resolved(f"{where}, method {method}", settings, laid, (method,))
    axes: dict[str, Axis] = {"method": method, "seed": run.line.seed}
    return replace(run, axes=axes | _labels(point))


def _laid(
    where: str,
    base: Raw,
    methods: Mapping[str, Raw],
    implies: Mapping[str, Mapping[str | int | float, Raw]],
    cells: Iterable[CellSettings],
    point: Mapping[str, Any],
    method: str,
) -> Raw:
    """Return the settings of a method at a point of the grid."""
    if method not in methods:
        known = ", ".join(sorted(methods))
        raise FedstageError(f"{where}: method = {method!r}: unknown; use one of {known}")
    settings = lay(base, methods[method])
    for path, value in point.items():
        settings = lay(settings, in_full(implies.get(path, {}).get(_name(value), {})))
    labels = {"method": method} | _labels(point)
    for cell in cells:
        if selects(cell.at, labels):
            settings = lay(settings, in_full(cell.settings))
    for path, value in point.items():
        settings = assign(settings, path, value)
    settings.pop("method", None)
    return settings


def _labels(point: Mapping[str, Any]) -> dict[str, Axis]:
    """Return the values of axes as tables show them."""
    return {key: _label(plain("", value)) for key, value in point.items()}


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
        axes = {path: _label(plain("", value)) for path, value in point.items()}
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


def _name(value: Any) -> Any:
    """Return a grid value, the name of one that is a choice with settings, a list as text."""
    if isinstance(value, Mapping):
        return value.get("name", next(iter(value), None))
    return _label(value)


def _label(value: Any) -> Axis:
    """Name a grid value that is a choice with settings by its name and settings."""
    if isinstance(value, list):
        return " ".join(str(_label(inner)) for inner in value)
    if not isinstance(value, Mapping):
        return cast(Axis, value)
    return " ".join(f"{key} {_label(inner)}" for key, inner in value.items())
