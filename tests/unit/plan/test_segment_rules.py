"""Rules of segments: which recipes share one, and what it is called."""

import re

from tests.shared.recipes import recipe

from fedstage.plan import segment_files, segments
from fedstage.plan.runs import Run
from fedstage.plan.segment_rules import SegmentJob, segment_rules, shared_rules
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
            kept = segment_files.rounds_kept(job.part, jobs, "needed", ())
            made = segment_files.outputs(jobs, kept)
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


def test_what_stays_is_an_output():
    """Of four rounds, each with four updates, a model and a table, five files are read."""
    run = Run({}, recipe(), RunLength(rounds=4, evaluate_every=3))
    for keep, files in (("all", 24), ("models", 8), ("needed", 5)):
        (rule,) = segment_rules([run], 4, keep, [participants_table(run.recipe, 1, 0)])
        assert len(rule.outputs) == files, keep


def names_of(*made):
    """Return the names of rules of recipes that train groups, and make files."""
    jobs = {}
    for seed, (groups, files) in enumerate(made):
        one = recipe(seed=seed, global_models=3)
        job = SegmentJob(segments.Segment(one, groups, 1, 4), (), (), "")
        jobs[job] = [f"results/training/{training_id(one)}/{file}" for file in files]
    return [rule.name for rule in shared_rules(jobs)]


def test_segments_of_the_same_rounds_and_other_files_have_other_names():
    first, other = names_of(((0,), "a"), ((0,), "ab"))
    assert other == f"{first}_kind_2"
    # No number makes the name of a segment of more groups.
    assert len(set(names_of(((0, 1), "a"), ((0, 1), "b"), ((0, 1, 2), "c")))) == 3
