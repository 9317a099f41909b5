"""The tables and runs that a call of Snakemake is about, which it shows."""

from collections.abc import Collection, Iterable
from itertools import chain
from pathlib import PurePosixPath

from fedstage.experiments.catalogue import Catalogue, trained_runs
from fedstage.experiments.targets import is_named, results_of
from fedstage.plan.runs import Run

#: Results that follow from settings alone: their files need no training.
_UNTRAINED = ("descriptions", "properties", "simulation", "forgetting")


def shown_results(catalogue: Catalogue, wanted: Collection[str]) -> list[str]:
    """Return the tables in Markdown that a call asks for, and after them its reports in HTML.

    Parameters
    ----------
    wanted : Collection of str
        The files, rules and experiments on the command line; by default, and with the rule `all`,
        the targets of the configuration.
    """
    found = (_results(catalogue, name) for name in _wanted(catalogue, wanted))
    files = list(dict.fromkeys(chain.from_iterable(found)))
    tables = [path for path in files if path.endswith(".md")]
    return tables + [path for path in files if path.startswith("results/report/")]


def shown_runs(catalogue: Catalogue, wanted: Collection[str]) -> list[Run]:
    """Return the runs that are trained for a call; `wanted` is as in `shown_results`."""
    targets = _targets(catalogue)
    names = _wanted(catalogue, wanted)
    found = ((trained_runs if name in targets else _runs)(catalogue, name) for name in names)
    return list(chain.from_iterable(found))


def _wanted(catalogue: Catalogue, names: Iterable[str]) -> list[str]:
    """Return the names on a command line, in a fixed order, or the configured targets."""
    every = sorted(names)
    configured = catalogue.config.targets if not every or "all" in every else []
    return list(dict.fromkeys([*configured, *(name for name in every if name != "all")]))


def _targets(catalogue: Catalogue) -> set[str]:
    """Return the names of all targets, with and without the scale `default`."""
    named = {"/".join(key) for key in catalogue.runs}
    return named | {name.removesuffix("/default") for name in named}


def _results(catalogue: Catalogue, name: str) -> list[str]:
    """Return the results of a target, or the table that a file shows in another format."""
    if name in _targets(catalogue):
        return results_of(catalogue, name)
    path = PurePosixPath(name).with_suffix(".md")
    known = {file for target in _targets(catalogue) for file in results_of(catalogue, target)}
    return [str(path)] if name in known and str(path) in known else []


def _runs(catalogue: Catalogue, file: str) -> list[Run]:
    """Return the runs that a file is made from: by its experiment and scale, or by its recipe."""
    if file.startswith(tuple(f"results/{kind}/" for kind in _UNTRAINED)):
        return []
    return [
        one
        for key, runs in catalogue.runs.items()
        for run in runs
        for one in run.evaluated()
        if is_named(key, one, file)
    ]
