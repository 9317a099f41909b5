"""Targets: their files, and the runs that a command line is about."""

import shlex
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import PurePosixPath

from fedstage.errors import FedstageError
from fedstage.experiments import descriptions
from fedstage.experiments.catalogue import Catalogue, metrics_of, named_folders
from fedstage.experiments.library import experiment_names
from fedstage.experiments.published_rows import without_seed
from fedstage.plan.data_files import AnyRecipe
from fedstage.plan.results import result_files
from fedstage.plan.runs import Run, settings_of_folders, split_target
from fedstage.plan.stages import RECIPES
from fedstage.plan.training import aggregation, round_state
from fedstage.plan.training_folder import owners
from fedstage.protocol.groups import client_groups
from fedstage.settings.cells import show_point
from fedstage.settings.ensembles import Ensemble
from fedstage.settings.merging import Raw
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.settings.recipes import Recipe
from fedstage.settings.validation import suggest

_SHOWN = 3  # runs in a line


def asked(catalogue: Catalogue, arguments: str) -> list[tuple[str, str]]:
    """Return the experiments and scales that a command line is about.

    These are the ones that it names, also by a folder of settings, or the configured targets, which
    it may set itself.
    """
    folders = named_folders(arguments)
    named = [
        key
        for key, runs in catalogue.runs.items()
        if "/".join(key) in arguments or (folders and not folders.isdisjoint(_folders(runs)))
    ]
    words = shlex.split(arguments)
    if not named or "all" in words or any(word.startswith("targets=") for word in words):
        configured = {split_target(target) for target in catalogue.config.targets}
        named += [key for key in catalogue.runs if key in configured and key not in named]
    return named


def asked_runs(catalogue: Catalogue, arguments: str) -> list[Run]:
    """Return the runs that a command line is about, and runs that share rounds with them.

    All runs that share rounds determine how these are cut into segments and which files stay. So
    jobs on other machines get the arguments of the command that started them.
    """
    keys = asked(catalogue, arguments)
    shared = {
        _shared(part.recipe)
        for key in keys
        for run in catalogue.runs[key]
        for part in run.trained()
    }
    every = (run for runs in catalogue.runs.values() for run in runs)
    return [part for run in every for part in run.trained() if _shared(part.recipe) in shared]


def last_states(run: Run, exists: Callable[[str], bool]) -> Iterator[str]:
    """Yield the round state with which a run can be lengthened: that of its last round.

    No job of the run reads it, so it stays only if a target asks for it. A state that a longer run
    has used up is not asked for: it would be made again, with all rounds before it. Nor is that of
    a single round.
    """
    for part in run.chain():
        recipe, last = part.recipe, part.length.rounds
        if isinstance(recipe, Recipe) and last > 1 and (states := round_state(recipe, last)):
            groups = client_groups(recipe)
            made = all(exists(aggregation(recipe, last, group)) for group in groups)
            yield from (file for file in states if exists(file) or not made)


def named_targets(catalogue: Catalogue, arguments: str) -> list[str]:
    """Return the targets, such as quickstart or fedsdd_table2/mini, among the words of arguments.

    Raises
    ------
    FedstageError
        If an experiment among them has no such scale.
    """
    found = []
    for word in dict.fromkeys(shlex.split(arguments)):
        name, scale = split_target(word)
        if name not in catalogue.experiments or word.count("/") > 1:
            continue
        if (name, scale) not in catalogue.runs:
            raise FedstageError(_no_such_scale(catalogue, name, scale))
        found.append(word)
    return found


def _no_such_scale(catalogue: Catalogue, experiment: str, scale: str) -> str:
    scales = [f"{experiment}/{known}" for known in catalogue.experiments[experiment].scales]
    return f"{experiment}/{scale}: no such scale; use one of {', '.join(scales)}"


def explain_unknown(
    catalogue: Catalogue, targets: Iterable[str], has_rule: Callable[[str], bool]
) -> str | None:
    """Return a line about the first target that is neither an experiment nor a file of one, if any.

    `has_rule` returns whether files of this form are made for some settings.
    """
    for target in sorted(targets):
        folder = "/".join(target.split("/")[:3])
        if target.startswith("results/") and folder.split("/")[1] in RECIPES:
            if folder not in catalogue.folders:
                return f"{folder}: no experiment of this configuration has this folder"
        elif not has_rule(target):
            return f"{target}: no experiment, rule or file of this name{_meant(catalogue, target)}"
    return None


def _meant(catalogue: Catalogue, target: str) -> str:
    """Return the experiment, or the file of an experiment that is read, that a target may mean."""
    if "." not in target and not target.startswith("results/"):
        known = experiment_names(catalogue.config, catalogue.folder)
        return suggest(split_target(target)[0], known)
    every = (_results(catalogue, *key).values() for key in catalogue.runs)
    return suggest(target, (path for results in every for paths in results for path in paths))


def _folders(runs: Iterable[Run]) -> set[str]:
    """Return the names of the folders of settings that runs need."""
    recipes = (part.recipe for run in runs for part in run.trained())
    return {path.split("/")[2] for path in settings_of_folders(recipes)}


def _shared(recipe: AnyRecipe) -> AnyRecipe:
    """Return the recipe whose rounds other runs may share."""
    return owners(recipe)[1] if isinstance(recipe, Recipe) else recipe


def results_of(catalogue: Catalogue, target: str) -> list[str]:
    """Return the files of a target such as quickstart or fedsdd_table2/mini."""
    experiment, scale = split_target(target)
    every = _results(catalogue, experiment, scale)
    wanted = catalogue.experiments[experiment].results
    return list(dict.fromkeys(path for result in wanted for path in every[result]))


def shown_results(catalogue: Catalogue, wanted: Collection[str]) -> list[str]:
    """Return the tables in Markdown that a call asks for, and after them its reports in HTML.

    Parameters
    ----------
    wanted : Collection of str
        The files, rules and experiments on the command line; by default, and with the rule `all`,
        the targets of the configuration.
    """
    every = sorted(wanted)
    configured = catalogue.config.targets if not every or "all" in every else []
    names = dict.fromkeys([*configured, *(name for name in every if name != "all")])
    known = {file for key in catalogue.runs for file in results_of(catalogue, "/".join(key))}
    files: dict[str, None] = {}
    for name in names:
        # A file shows its experiment's table, whatever its format.
        table = str(PurePosixPath(name).with_suffix(".md"))
        if split_target(name) in catalogue.runs:
            files |= dict.fromkeys(results_of(catalogue, name))
        elif {name, table} <= known:
            files[table] = None
    tables = [path for path in files if path.endswith(".md")]
    return tables + [path for path in files if path.startswith("results/report/")]


def explain_no_table(
    catalogue: Catalogue, keys: Iterable[tuple[str, str]], exists: Callable[[str], bool]
) -> Iterator[str]:
    """Yield a line on each experiment and scale of which some runs, not all, have no metrics."""
    for key in keys:
        runs = catalogue.runs[key]
        lacking = [run.axes for run in runs if not exists(metrics_of(run))]
        if 0 < len(lacking) < len(runs):
            told = list(dict.fromkeys(show_point(without_seed(axes)) for axes in lacking))
            more = f" and {len(told) - _SHOWN} more" if len(told) > _SHOWN else ""
            yield (
                f"{'/'.join(key)}: no table, as {len(lacking)} of {len(runs)} runs failed: "
                f"{'; '.join(told[:_SHOWN])}{more}; the others make one without these in the grid"
            )


def _results(catalogue: Catalogue, experiment: str, scale: str) -> dict[str, list[str]]:
    """Return the files of each result that an experiment may have at a scale."""
    published = catalogue.published.get((experiment, scale))
    figures = ["accuracy", "partition"] + ["published"] * bool(published and published.comparable)
    table = catalogue.experiments[experiment].table
    figures += ["over"] * bool(table.over) + ["differences"] * bool(table.baseline)
    figures += ["ensembles"] if any(map(is_ensemble, catalogue.runs[experiment, scale])) else []

    def made(stage: str, *shown: str) -> list[str]:
        every = shown or ("",)
        return [file for one in every for file in result_files(stage, experiment, scale, one)]

    costs = made("costs")
    judged = made("table", "claims") if descriptions.claims_on(catalogue, experiment) else []
    return {
        "table": [*made("scores"), *made("table", "tables"), *judged],
        "figures": made("figure", *figures),
        "communication": [
            *costs, *made("table", "communication"), *made("figure", "communication"), *judged
        ],
        "costs": [*costs, *made("table", "costs"), *made("figure", "costs")],
        "retention": [*made("table", "retention"), *made("figure", "retention"), *judged],
        "round_times": [*costs, *made("table", "round_times"), *judged],
        "clients": made("table", "clients"),
        **{name: made(name) for name in ("properties", "simulation", "report")},
    }  # fmt: skip


def is_ensemble(run: Run) -> bool:
    """Whether the scores of a run belong to an ensemble."""
    if isinstance(run.recipe, OneShotRecipe):
        return run.recipe.distillation is None
    return isinstance(run.length.evaluate, Ensemble)


def describe_choice(run: Run) -> Raw:
    """Return what a run chooses from, and by which metrics, for JSON."""
    return {
        "values": [one.axes for one in run.candidates],
        "validation": [metrics_of(one) for one in run.compared],
        "metrics": [metrics_of(one) for one in run.candidates],
    }


def describe(catalogue: Catalogue, experiment: str, scale: str, what: str) -> Raw:
    """Return the `runs`, `results` or `claims` of an experiment at a scale, for JSON.

    Raises
    ------
    FedstageError
        If there is no such experiment and scale, or it has no claims.
    """
    if (experiment, scale) not in catalogue.runs:
        if experiment in catalogue.experiments:
            raise FedstageError(_no_such_scale(catalogue, experiment, scale))
        names = experiment_names(catalogue.config, catalogue.folder)
        near = suggest(f"{experiment}/{scale}", (f"{name}/{scale}" for name in names))
        raise FedstageError(f"{experiment}/{scale}: no such experiment{near}")
    if what == "runs":
        return descriptions.describe_runs(catalogue, experiment, scale)
    if what == "results":
        return descriptions.describe_results(catalogue, experiment)
    return descriptions.claims_to_judge(catalogue, experiment)
