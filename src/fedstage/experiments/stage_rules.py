"""The rules of a run: for each stage of the graph, the ones that the granularity needs."""

from collections.abc import Iterator
from dataclasses import replace
from typing import get_args

from fedstage.experiments.catalogue import Catalogue, state_rounds
from fedstage.experiments.targets import asked_runs, cohorts_of
from fedstage.plan.jobs import OF_ROUNDS
from fedstage.plan.rules import Rule, cohort_rules, rules_of
from fedstage.plan.stages import GRAPH
from fedstage.plan.training import STEPS, local_training, logits
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
