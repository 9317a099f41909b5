"""All experiments of config.yaml and of files, merged with those that they extend (`like`)."""

from collections.abc import Mapping
from pathlib import Path

from fedstage.errors import FedstageError
from fedstage.experiments.grid import label, named
from fedstage.results.cells import check_cells
from fedstage.settings.config_file import Config
from fedstage.settings.experiments import Experiment, Scale
from fedstage.settings.merging import merge, merge_each
from fedstage.settings.scores import Axis
from fedstage.settings.validation import validate
from fedstage.storage.yaml_files import load_yaml


def load_experiments(config: Config, folder: Path) -> dict[str, Experiment]:
    """Return all experiments: those of config.yaml, and a file each of `experiments` and papers.

    Parameters
    ----------
    folder : Path
        The folder `workflow`.
    """
    experiments = dict(config.experiments)
    files = [*folder.glob("experiments/*.yaml"), *folder.glob("papers/*/experiments/*.yaml")]
    for path in sorted(files, key=lambda path: path.stem):
        if path.stem in experiments:
            raise FedstageError(f"experiments.{path.stem}: is also {path}; rename one of them")
        experiments[path.stem] = validate(Experiment, load_yaml(path), str(path))
    extensible = ", ".join(key for key, one in experiments.items() if one.like is None)
    for name in (target.partition("/")[0] for target in config.targets):
        like = experiments[name].like if name in experiments else None
        if like not in (None, *experiments):
            raise FedstageError(f"{name}: like = {like!r}: unknown; use one of {extensible}")
    for name in experiments:
        _check_cells(name, experiments)
    # Skip experiments that extend one missing from this configuration.
    usable = [name for name, one in experiments.items() if one.like in (None, *experiments)]
    return {name: _inherit(name, experiments) for name in usable}


def _check_cells(name: str, experiments: Mapping[str, Experiment]) -> None:
    """Refuse settings of cells that are neither in the experiment nor in one that extends it."""
    family = [one for key, one in experiments.items() if name in (key, one.like)]
    parts = [part for one in family for part in (one, *one.scales.values()) if part is not None]
    points: list[dict[str, Axis]] = [
        {axis: text}
        for part in parts
        for axis, values in part.grid.items()
        for shown, value in named(values)
        for text in (shown, label(value))
    ]
    for scale, change in experiments[name].scales.items():
        for number, cell in enumerate(change.cells if change else ()):
            where = f"{name}/{scale}: cells.{number}.at"
            check_cells(where, name, cell.at, points, seeds=True)


def _inherit(name: str, experiments: Mapping[str, Experiment]) -> Experiment:
    """Merge an experiment with the one that it extends."""
    experiment = experiments[name]
    if experiment.like is None:
        return experiment
    parent = experiments[experiment.like]
    if parent.like is not None:
        known = ", ".join(key for key, value in experiments.items() if value.like is None)
        raise FedstageError(f"{name}: like = {experiment.like!r}: must be one of {known}")
    methods = merge_each(parent.methods, experiment.methods)
    base = merge(parent.base, experiment.base)
    scales = {
        name: _merge_scales(parent.scales.get(name), scale)
        for name, scale in experiment.scales.items()
    }
    inherited = {axis: value for axis, value in parent.implies.items() if axis in experiment.grid}
    implies = inherited | experiment.implies
    update = {"base": base, "methods": methods, "scales": scales, "implies": implies}
    return experiment.model_copy(update=update)


def _merge_scales(parent: Scale | None, scale: Scale | None) -> Scale:
    """Merge scales of the same name; axes of the grid are not inherited."""
    below, above = parent or Scale(), scale or Scale()
    methods = merge_each(below.methods, above.methods)
    cells = [*below.cells, *above.cells]
    return Scale(base=merge(below.base, above.base), methods=methods, grid=above.grid, cells=cells)
