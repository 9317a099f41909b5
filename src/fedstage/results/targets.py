"""The tidy files of a target, such as ``quickstart`` or ``fedsdd_table2/mini``, for Python."""

from pathlib import Path

import pandas as pd

from fedstage.errors import FedstageError
from fedstage.results.tidy import METHOD, Tidy, read_tidy
from fedstage.settings.validation import as_typed

#: The files of a target, below the folder of results.
_FILES = "results/tables/{experiment}/{scale}.{kind}.parquet"


def read_target(target: str, kind: str = "scores", folder: str | Path = ".") -> Tidy:
    """Return the scores or costs of a target in a working folder.

    Raises
    ------
    FedstageError
        If the file has not been made, or is damaged.
    """
    experiment, _, scale = target.partition("/")
    path = Path(folder, _FILES.format(experiment=experiment, scale=scale or "default", kind=kind))
    if not path.is_file():
        known = sorted(Path(folder).glob(_FILES.format(experiment="*", scale="*", kind=kind)))
        names = [f"{at.parent.name}/{at.name.partition('.')[0]}" for at in known]
        there = f"there are the {kind} of {', '.join(names)}" if names else "there are none"
        made = as_typed("snakemake", "--cores", "all", str(path.relative_to(folder)))
        raise FedstageError(f"{target}: no {kind} ({path}); {there}; {made} makes them")
    return read_tidy(path)


def scores(target: str, folder: str | Path = ".") -> pd.DataFrame:
    """Return all scores of a target, one row per value.

    Parameters
    ----------
    target : str
        An experiment, with its scale unless that is ``default``.
    folder : str or Path
        The working folder, which has a folder `results`.

    Returns
    -------
    pandas.DataFrame
        A column for each axis of the grid and `seed`, `label` (the method's name in tables),
        `evaluated` (``global_model``, ``clients``, ...), `role` (``test``, ``validation``: the
        samples), `round`, `measure` and `value` (accuracies in percent), and what is the same for
        a run: `settings`, `source`, `machine` and `seconds`. Of accuracies by client and class
        also `client` and `class`.
    """
    return _labelled(read_target(target, "scores", folder))


def costs(target: str, folder: str | Path = ".") -> pd.DataFrame:
    """Return what the runs of a target cost, one row per run and stage.

    Parameters are as for `scores`. Columns are the axes, `seed`, `label`, `stage`, `side`
    (``clients`` or ``server`` for seconds, ``travel`` for bytes, ``memory`` of predictions; sides
    ``round`` are the same seconds by rounds), and the numbers of
    `fedstage.results.tidy.COSTS`.
    """
    return _labelled(read_target(target, "costs", folder))


def _labelled(tidy: Tidy) -> pd.DataFrame:
    frame = tidy.frame.rename(columns={"label": "class"})
    if METHOD in frame:
        place = list(frame.columns).index(METHOD) + 1
        frame.insert(place, "label", frame[METHOD].replace(tidy.header.labels))
    frame.attrs.update(tidy.header.model_dump(mode="json", exclude_defaults=True))
    return frame
