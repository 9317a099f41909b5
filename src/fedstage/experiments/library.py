"""Experiments of config.yaml and of files, merged with the ones that they extend (`like`)."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial, reduce
from pathlib import Path
from typing import Any

from fedstage.errors import FedstageError
from fedstage.experiments.grid import label, named
from fedstage.settings.base import IN_WORDS, NAME
from fedstage.settings.cells import check_cells
from fedstage.settings.config_file import Config
from fedstage.settings.experiments import Experiment, Scale, Table
from fedstage.settings.merging import merge, merge_each
from fedstage.settings.scores import Axis
from fedstage.settings.validation import see_list, suggest, validate
from fedstage.storage.yaml_files import load_yaml


def experiment_names(config: Config, folder: Path) -> list[str]:
    """Return the names of all experiments, without reading their files."""
    return list(dict.fromkeys([*config.experiments, *_files(folder)]))


def load_experiments(
    config: Config,
    folder: Path,
    names: Collection[str] | None = None,
) -> dict[str, Experiment]:
    """Return experiments of config.yaml and of files in the folders of experiments and papers.

    Parameters
    ----------
    folder : Path
        The folder `workflow`.
    names : Collection of str, optional
        The experiments to read; by default all.

    Raises
    ------
    FedstageError
        If a file is not valid, extends an unknown experiment or itself, or has settings for cells
        that do not exist.
    """
    known = experiment_names(config, folder)
    read = cache(partial(_read, config, _files(folder)))
    found = {name: inherit(name, read) for name in known if names is None or name in names}
    for name in found:
        has_cells = any(change.cells for change in read(name).scales.values())
        # Settings of cells may be meant for experiments that extend this one.
        if has_cells and not faults_of(known, lambda key: list(lineage(key, read))):
            family = {key: read(key) for key in known if name in lineage(key, read)}
            _check_cells(name, family)
    return found


def lineage(name: str, read: Callable[[str], Experiment]) -> Iterator[str]:
    """Yield an experiment, the one that it is `like`, the one that that is like, and so on.

    FedstageError if one of them is like itself.
    """
    seen: list[str] = []
    above: str | None = name
    while above is not None:
        if above in seen:
            raise FedstageError(f"{seen[-1]}: like = {above!r}: is like itself")
        seen.append(above)
        yield above
        above = read(above).like


def faults_of(names: Iterable[str], read: Callable[[str], object]) -> dict[str, str]:
    """Return the fault of each experiment that cannot be read, or resolved."""
    faults = {}
    for name in names:
        try:
            read(name)
        except FedstageError as error:
            faults[name] = str(error)
    return faults


def _files(folder: Path) -> dict[str, list[Path]]:
    """Return the files of each experiment's name, without reading any; there should be one each.

    The working folder, in which config.yaml is, has some, and the workflow has some.
    """
    own = Path().glob("experiments/*.yaml")
    paths = [*own, *folder.glob("experiments/*.yaml"), *folder.glob("papers/*/experiments/*.yaml")]
    files: dict[str, list[Path]] = {}
    for path in sorted(paths, key=lambda path: path.stem):
        files.setdefault(path.stem, []).append(path)
    return files


def _read(config: Config, files: Mapping[str, Sequence[Path]], name: str) -> Experiment:
    """Return an experiment as it is written, without what it inherits.

    Its name is checked here, so that a file with a bad name affects no other experiment.
    """
    paths = files.get(name)
    if not paths:
        where, experiment = name, config.experiments[name]
    elif not re.fullmatch(NAME, name):
        raise FedstageError(f"{paths[0]}: name = {name!r}: {IN_WORDS[NAME]}")
    elif name in config.experiments or len(paths) > 1:
        raise FedstageError(f"experiments.{name}: is also {paths[-1]}; rename one of them")
    else:
        where = str(paths[0])
        experiment = validate(Experiment, load_yaml(paths[0]), where)
    known = {*config.experiments, *files}
    if experiment.like not in (None, *known):
        near = suggest(experiment.like, known) or f"; {see_list('experiments')}"
        raise FedstageError(f"{where}: like = {experiment.like!r}: unknown{near}")
    return experiment


def _check_cells(name: str, family: Mapping[str, Experiment]) -> None:
    """Refuse settings of an experiment's cells that neither it nor one that extends it has.

    `family` are these experiments, by their names.
    """
    scales = (scale for member in family.values() for scale in member.scales.values())
    parts: list[Experiment | Scale] = [*family.values(), *scales]
    points: list[dict[str, Axis]] = [
        {axis: text}
        for part in parts
        for axis, values in part.grid.items()
        for shown, value in named(values)
        for text in (shown, label(value))
    ]
    for scale, change in family[name].scales.items():
        for number, cell in enumerate(change.cells):
            where = f"{name}/{scale}: cells.{number}.at"
            check_cells(where, name, cell.at, points, seeds=True)


def inherit(name: str, read: Callable[[str], Experiment]) -> Experiment:
    """Return an experiment with all that it inherits.

    FedstageError if it extends an unknown experiment or itself.
    """
    first, *heirs = reversed([read(one) for one in lineage(name, read)])
    return reduce(_extended, heirs, first)


def _extended(parent: Experiment, experiment: Experiment) -> Experiment:
    """Merge an experiment with all settings, inherited or own, of the one that it extends."""
    implied = {axis: value for axis, value in parent.implies.items() if axis in experiment.grid}
    update = {
        "base": merge(parent.base, experiment.base),
        "methods": merge_each(parent.methods, experiment.methods),
        "scales": {
            name: _merge_scales(parent.scales.get(name, Scale()), scale)
            for name, scale in experiment.scales.items()
        },
        "implies": implied | experiment.implies,
        "table": _inherit_table(experiment, parent.table),
    }
    return experiment.model_copy(update=update)


def _inherit_table(experiment: Experiment, parent: Table) -> Table:
    """Return an experiment's table, which extends the other's unless it has rows of its own.

    Axes that are not in its grid are left out, and further ones of its grid are rows.
    """
    own, grid = experiment.table, list(experiment.grid)
    if "rows" in own.model_fields_set:
        return own
    known = {"method", *grid}.intersection
    rows = [axis for axis in parent.rows if known([axis])]
    columns = [axis for axis in parent.columns if known([axis])]
    new = [axis for axis in grid if axis not in (*rows, *columns, "seed")]
    update: dict[str, Any] = {"rows": [*rows, *new] or ["method"], "columns": columns}
    update["over"] = parent.over if parent.over in grid else None
    methods = experiment.grid.get("method", [])
    update["baseline"] = parent.baseline if parent.baseline in methods else None
    if parent.published is not None:
        axes, match = (
            {axis: of[axis] for axis in known(of)}
            for of in (parent.published.axes, parent.published.match)
        )
        update["published"] = parent.published.model_copy(update={"axes": axes, "match": match})
    update |= {key: getattr(own, key) for key in own.model_fields_set}
    return parent.model_copy(update=update)


def _merge_scales(below: Scale, above: Scale) -> Scale:
    """Merge scales of the same name; axes of the grid are not inherited."""
    return Scale(
        base=merge(below.base, above.base),
        methods=merge_each(below.methods, above.methods),
        grid=above.grid,
        cells=[*below.cells, *above.cells],
    )
