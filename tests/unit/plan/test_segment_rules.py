"""Rules of segments: which recipes share one, and what it is called."""

import re

import pytest
from tests.shared.recipes import METHODS, RANDOM, recipe

from fedstage.plan import segment_rules as of_rules
from fedstage.plan.runs import Run
from fedstage.plan.segment_rules import segment_rules
from fedstage.plan.training import participants_table
from fedstage.plan.training_folder import training_id
from fedstage.settings.runs import RunLength


def rules_of(*seeds):
    length = RunLength(rounds=8, evaluate_every=8)
    runs = [Run({}, recipe(seed=seed), length) for seed in seeds]
    return segment_rules(runs, 4, "needed", ())


def test_recipes_that_make_the_same_files_share_a_rule():
    rules = rules_of(0, 1, 2)
    names = [f"segment_{rounds}_groups_0" for rounds in ("0001_0004", "0005_0008")]
    assert [(rule.name, len(rule.jobs)) for rule in rules] == [(name, 3) for name in names]
    (other, _) = rules_of(3)
    for rule in rules:
        for name, job in rule.jobs.items():
            assert training_id(job.part.recipe) == name
            jobs = job.part.jobs()
            made = of_rules.outputs_of(jobs, of_rules.needed(job.part, jobs, ()))
            assert [path.format(recipe=name) for path in rule.outputs if "/aggr" in path] == made
            assert re.fullmatch(rule.recipes, name)
            assert not re.fullmatch(other.recipes, name)


def test_a_segment_waits_for_the_first_output_of_the_one_before_it():
    first, second = rules_of(0)
    (before,), ((name, after),) = first.jobs.values(), second.jobs.items()
    model = f"results/training/{name}/round_0004/group_0/aggregated.safetensors"
    assert [path.format(recipe=name) for path in first.outputs] == [model]
    assert model in after.waits_for
    assert model not in before.waits_for


@pytest.mark.parametrize("keep", ["needed", "all"])
def test_segments_of_several_seeds_and_alphas_are_those_of_each_alone(keep):
    length = RunLength(rounds=8, evaluate_every=4)
    methods = {**METHODS, "random delays": RANDOM}.values()
    draws = [{"seed": seed, "partition": {"dirichlet": {"alpha": alpha}}}
             for seed, alpha in ((0, 0.1), (3, 0.1), (3, 1.0))]  # fmt: skip
    runs = [Run({}, recipe(**method | draw), length) for method in methods for draw in draws]
    tables = [participants_table(run.recipe, 2, 0) for run in runs]

    def jobs_of(some):
        return {
            (name, *(path.format(recipe=name) for path in rule.outputs)): job
            for rule in segment_rules(some, 3, keep, iter(tables))
            for name, job in rule.jobs.items()
        }

    apart = [jobs_of(runs[start :: len(draws)]) for start in range(len(draws))]
    assert jobs_of(runs) == apart[0] | apart[1] | apart[2]
    assert len({len(jobs) for jobs in apart}) == 1
