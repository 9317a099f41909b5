"""All experiments: those of config.yaml and of files, laid over those that they are like."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from fedstage.errors import FedstageError
from fedstage.experiments.grid import label, named
from fedstage.results.cells import as_text, names_of
from fedstage.settings.config_file import Config
from fedstage.settings.experiments import Experiment, Scale
from fedstage.settings.merging import merge, merge_each
from fedstage.settings.scores import Cells
from fedstage.settings.validation import validate
from fedstage.storage.yaml_files import load_yaml


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
            called = (name for pair in named(values) for name in (pair[0], label(pair[1])))
            texts = (text for name in called for text in names_of(axis, name))
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
    methods = merge_each(parent.methods, experiment.methods)
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
    methods = merge_each(below.methods, above.methods)
    cells = [*below.cells, *above.cells]
    return Scale(base=merge(below.base, above.base), methods=methods, grid=above.grid, cells=cells)
