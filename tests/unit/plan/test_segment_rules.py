import re

import pytest

from fedstage.plan import segment_files, segments
from fedstage.plan.runs import Run
from fedstage.plan.segment_rules import SegmentJob, segment_rules, shared_rules
from fedstage.plan.training import participants_table
from fedstage.plan.training_folder import training_id
from fedstage.settings.recipes import Recipe
from fedstage.settings.runs import RunLength

BASE = {
    "data": "digits",
    "clients": 8,
    "partition": "iid",
    "participants": 4,
    "model": "cnn_small",
    "client": {"epochs": 1, "batch_size": 16, "learning_rate": 0.05},
}


def rules_of(*seeds):
    runs = [
        Run(
            {}, Recipe.model_validate({**BASE, "seed": seed}), RunLength(rounds=8, evaluate_every=8)
        )
        for seed in seeds
    ]
    return segment_rules(runs, 4, "needed", ())


def test_recipes_that_make_the_same_files_share_a_rule():
    rules = rules_of(0, 1, 2)
    assert [rule.name for rule in rules] == [
        "segment_0001_0004_groups_0",
        "segment_0005_0008_groups_0",
    ]
    assert [len(rule.jobs) for rule in rules] == [3, 3]
    for rule in rules:
        for name, job in rule.jobs.items():
            assert training_id(job.part.recipe) == name
            jobs = job.part.jobs()
            kept = segment_files.rounds_kept(job.part, jobs, "needed", ())
            made = segment_files.outputs(jobs, kept)
            assert [path.format(recipe=name) for path in rule.outputs if "/aggr" in path] == made


def test_a_segment_waits_for_the_first_output_of_the_one_before_it():
    first, second = rules_of(0)
    (before,), ((recipe, after),) = first.jobs.values(), second.jobs.items()
    model = f"results/training/{recipe}/round_0004/group_0/aggregated.safetensors"
    assert [path.format(recipe=recipe) for path in first.outputs] == [model]
    assert model in after.waits_for
    assert model not in before.waits_for


@pytest.mark.parametrize(("keep", "files"), [("all", 24), ("models", 8), ("needed", 5)])
def test_what_stays_is_an_output(keep, files):
    """Of four rounds, each with four updates, a model and a table, five files are read."""
    recipe = Recipe.model_validate({**BASE, "seed": 0})
    run = Run({}, recipe, RunLength(rounds=4, evaluate_every=3))
    (rule,) = segment_rules([run], 4, keep, [participants_table(recipe, 1, 0)])
    assert len(rule.outputs) == files


def test_segments_of_the_same_rounds_and_other_files_have_other_names():
    recipe = Recipe.model_validate({**BASE, "seed": 0})
    other = Recipe.model_validate({**BASE, "seed": 1})
    jobs = [SegmentJob(segments.Segment(one, (0,), 1, 4), (), (), "") for one in (recipe, other)]
    folders = [f"results/training/{training_id(one)}" for one in (recipe, other)]
    made = [[f"{folders[0]}/a"], [f"{folders[1]}/a", f"{folders[1]}/b"]]
    rules = shared_rules(dict(zip(jobs, made, strict=True)))
    assert [rule.name for rule in rules] == [jobs[0].part.name, f"{jobs[0].part.name}_kind_2"]


def test_no_number_makes_the_name_of_a_segment_of_more_groups():
    """Groups 0 and 1 twice, with other files, and groups 0, 1 and 2."""
    recipes = [
        Recipe.model_validate({**BASE, "seed": seed, "global_models": 3}) for seed in range(3)
    ]
    groups = ((0, 1), (0, 1), (0, 1, 2))
    jobs = [
        SegmentJob(segments.Segment(one, trained, 1, 4), (), (), "")
        for one, trained in zip(recipes, groups, strict=True)
    ]
    made = [
        [f"results/training/{training_id(one)}/{file}"]
        for one, file in zip(recipes, "abc", strict=True)
    ]
    rules = shared_rules(dict(zip(jobs, made, strict=True)))
    assert len({rule.name for rule in rules}) == 3


@pytest.mark.parametrize("seed", [0, 1])
def test_the_constraint_admits_the_recipes_of_a_rule_alone(seed):
    (rule, _) = rules_of(seed)
    (other, _) = rules_of(1 - seed)
    assert re.fullmatch(rule.recipes, next(iter(rule.jobs)))
    assert not re.fullmatch(rule.recipes, next(iter(other.jobs)))
