"""The rules of a run: for each stage of the graph, the ones that the granularity needs."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Literal, get_args

from fedstage.experiments.catalogue import Catalogue
from fedstage.experiments.targets import asked_runs
from fedstage.plan.graph import folder_of
from fedstage.plan.jobs import OF_ROUNDS
from fedstage.plan.rounds import cohorts
from fedstage.plan.rules import Rule, cohort_rules, rules_of
from fedstage.plan.runs import Run
from fedstage.plan.stages import GRAPH
from fedstage.plan.training import STEPS, local_training, logits
from fedstage.plan.training_folder import FOLDER, owners, training_id
from fedstage.settings.exchange import generates, keeps_state
from fedstage.settings.groups import client_groups
from fedstage.settings.recipes import Recipe
from fedstage.settings.scores import Role


def stage_rules(catalogue: Catalogue, arguments: str) -> Iterator[Rule]:
    """Yield the rules of all stages, without those whose files segments make."""
    execution = catalogue.config.execution
    by_participant = execution.granularity == "participant"
    rounds, names = state_rounds(catalogue), set[str]()
    for stage in GRAPH:
        if by_participant or stage not in OF_ROUNDS or stage is logits:
            for rule in rules_of(stage, catalogue.folders, rounds):
                if rule.name in names:  # the same stage in another folder
                    rule = replace(rule, name=f"{rule.name}_of_{stage.folder.name}")
                names.add(rule.name)
                yield from _of_run(rule, catalogue, arguments)


def _of_run(rule: Rule, catalogue: Catalogue, arguments: str) -> Iterator[Rule]:
    """Yield a stage's rule, changed according to the settings of execution."""
    execution = catalogue.config.execution
    if rule.stage is logits and execution.granularity != "participant":
        # Logits of public images are computed in segments, as training is.
        images = "|".join(get_args(Role))
        rule = replace(rule, constraints={**rule.constraints, "images": images})
    if rule.stage in (local_training, *STEPS) and catalogue.config.keep != "all":
        rule = replace(rule, temporary=frozenset(rule.outputs))
    if rule.stage is local_training and execution.clients_per_job != 1:
        runs = asked_runs(catalogue, arguments)
        yield from cohort_rules(rule, cohorts_of(runs, execution.clients_per_job))
    else:
        yield rule


def cohorts_of(
    runs: Iterable[Run], size: int | Literal["all"]
) -> dict[tuple[int, tuple[int, ...]], list[str]]:
    """Return each cohort of at most `size`, by group and participants, with its recipes' ids."""
    found: dict[tuple[int, tuple[int, ...]], list[str]] = defaultdict(list)
    recipes = [run.recipe for run in runs if isinstance(run.recipe, Recipe)]
    for owner in dict.fromkeys(owner for recipe in recipes for owner in owners(recipe)):
        for group in client_groups(owner):
            for participants in cohorts(owner, group, None if size == "all" else size):
                found[group, participants].append(training_id(owner))
    return dict(found)


def state_rounds(catalogue: Catalogue) -> dict[str, list[int]]:
    """Return the rounds whose round state is kept, by the name of the folder in `training`.

    These are each `state_every`-th, and the last of each run of the folder. A run of one round
    keeps none, because extending it would save too little.
    """
    every = catalogue.config.state_every
    lasts: dict[str, set[int]] = {
        path.split("/")[2]: set() for path in catalogue.folders if path.split("/")[1] == FOLDER.name
    }
    runs = (run for runs in catalogue.runs.values() for run in runs)
    for trained in (part for run in runs for part in run.trained()):
        recipe = trained.recipe
        if isinstance(recipe, Recipe) and (keeps_state(recipe) or generates(recipe)):
            for owner in owners(recipe):
                lasts[folder_of(FOLDER, owner).rpartition("/")[2]].add(trained.length.rounds)
    return {
        name: sorted(rounds - {1} | set(range(every, max(rounds, default=every) + 1, every)))
        for name, rounds in lasts.items()
    }
