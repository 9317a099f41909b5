"""Segments make each file of a run once, from files that other segments make before."""

from graphlib import TopologicalSorter
from itertools import product

from tests.shared.recipes import METHODS, recipe

from fedstage.plan import segment_rules, segments
from fedstage.plan.graph import always, listed
from fedstage.plan.runs import Run
from fedstage.plan.stages import walk
from fedstage.plan.training import (
    aggregated_model,
    global_model,
    logits,
    participants_table,
    updates,
)
from fedstage.plan.training_folder import FOLDER, owners
from fedstage.protocol.groups import client_groups
from fedstage.settings.runs import RunLength

LENGTHS = (1, 3, 4, 25)
#: What no global model follows from: averages that only teach, clients' last logits, and states.
EXTRA = {"local_training", "aggregation", "logits", "cached_labels", "client_state"}


def run(name, rounds, **length):
    return Run({}, recipe(**METHODS[name]), RunLength(rounds=rounds, **length))


def planned(runs, length, keep="all"):
    """Return the files that each segment declares."""
    trained, logits = segments.plan(runs, length)
    parts = [*trained, *logits]
    read = segment_rules.files_read(runs, map(others, parts))
    some = trained if keep == "needed" else []
    kept = {part: segment_rules.needed(part, part.jobs(), read) for part in some}
    return {part: segment_rules.outputs_of(part.jobs(), kept.get(part)) for part in parts}


def others(part):
    """Return the files of rounds that a segment reads, and others make."""
    return [path for path in segment_rules.inputs_of(part.jobs())[1] if of_a_round(path)]


def of_a_round(path):
    return path.startswith(f"results/{FOLDER.name}/")


def places(parts, recipe):
    trained = (
        part for part in parts if isinstance(part, segments.Segment) and part.recipe == recipe
    )
    return [(part.groups, part.first, part.last) for part in trained]


def test_rounds_are_cut_at_multiples_and_stops():
    for first, stops, expected in (
        (1, {8}, [(1, 4), (5, 8)]),
        (1, {6}, [(1, 4), (5, 6)]),
        (1, {3, 10}, [(1, 3), (4, 4), (5, 8), (9, 10)]),
        (4, {10}, [(4, 4), (5, 8), (9, 10)]),
        (3, {2}, []),
        (1, {1}, [(1, 1)]),
    ):
        assert segments.cut(first, stops, 4) == expected


# --- all methods ----------------------------------------------------------------------------------


def test_each_file_of_runs_of_two_lengths_is_made_by_one_segment():
    runs = [run(name, rounds) for name in METHODS for rounds in (5, 7)]
    for length in LENGTHS:
        paths = [path for made in planned(runs, length).values() for path in made]
        assert len(paths) == len(set(paths)) > 2000


def test_segments_make_what_the_jobs_of_a_run_make_in_an_order_that_inputs_allow():
    for name, length in product(METHODS, LENGTHS):
        run_of_seven = run(name, 7)
        models = (
            global_model(run_of_seven.recipe, 7, group)
            for group in range(run_of_seven.recipe.global_models)
        )
        jobs = set(walk(models, always))
        parts = planned([run_of_seven], length)
        found = [job for part in parts for job in part.jobs()]
        assert len(found) == len(set(found)), name
        assert jobs <= set(found), (name, jobs - set(found))
        more = {job.stage.name for job in set(found) - jobs}
        assert more <= EXTRA, (name, more)
        for part in parts:
            made = set(others(part))
            for job in part.jobs():
                read = [path for paths in job.inputs.values() for path in listed(paths)]
                of_rounds = set(filter(of_a_round, read)) - {job.inputs["recipe"]}
                assert of_rounds <= made, (name, length, job)
                made |= set(job.files.values())
        maker = {path: part for part, made in parts.items() for path in made}
        # Raises CycleError.
        TopologicalSorter(
            {part: {maker[path] for path in others(part)} for part in parts}
        ).prepare()


def test_what_is_read_stays_and_is_made():
    for name, length in product(METHODS, (1, 4, 25)):
        for evaluate in ("global_model", "clients", "aggregated"):
            one = run(name, 7, evaluate={"name": evaluate}, evaluate_every=3)
            parts = planned([one], length, "needed")
            made = {path for files in parts.values() for path in files}
            read = segment_rules.files_read([one], map(others, parts))
            assert set(filter(of_a_round, read)) <= made, (name, length, evaluate)
            every = {path for files in planned([one], length).values() for path in files}
            assert made <= every, (name, length, evaluate)
            for round_, group in product((3, 6, 7), client_groups(one.recipe)):
                assert participants_table(one.recipe, round_, group) in made


# --- which groups are in one segment --------------------------------------------------------------


ALL, FIRST = (0, 1, 2), (0,)
#: Methods, their rounds, and the groups, first and last rounds of segments of at most 4 rounds: of
#: what a teacher or a head reaches, and of the rest, where that is another recipe's.
PLACES = [
    # Groups that no teacher reaches run ahead of the student.
    ("fedsdd", 8, [(FIRST, 1, 4), (FIRST, 5, 8)],
     [(FIRST, 1, 1), ((1,), 1, 4), ((1,), 5, 8), ((2,), 1, 4), ((2,), 5, 8)]),
    # Students that need one another are in one segment.
    ("late", 8, [((0, 1), 4, 4), ((0, 1), 5, 8)], [((0,), 1, 4), ((1,), 1, 4)]),
    # What trains in round 1 has no head of the server's yet, and is of any run's without one.
    ("fedet", 6, [(ALL, 1, 4), (ALL, 5, 6)], [((1,), 1, 1), ((2,), 1, 1)]),
    # Clients that exchange logits run ahead of the server, and nothing teaches the last one's.
    ("ds-fl", 6, [(FIRST, 1, 4), (FIRST, 5, 6)], [((1, 2), 1, 4), ((1, 2), 5, 6)]),
    ("fedmd", 3, None, [((0, 1), 1, 3)]),
    ("served, late", 2, [], [((1,), 1, 2), ((2,), 1, 2)]),
    # Clients that exchange features are in one segment with the server's model.
    ("fedgkt", 6, None, [(ALL, 1, 4), (ALL, 5, 6)]),
]  # fmt: skip


def test_which_groups_and_rounds_are_in_one_segment():
    for name, rounds, of_taught, of_others in PLACES:
        one = run(name, rounds)
        taught, untaught = owners(one.recipe)
        parts = planned([one], 4)
        assert places(parts, untaught) == of_others, name
        assert (None if taught == untaught else places(parts, taught)) == of_taught, name
    assert [part.last for part in planned([run("fedgkt", 6)], 1)] == [*range(1, 7)]


# --- what stays -----------------------------------------------------------------------------------


def kept(runs, length, keep):
    """Return all files that stay."""
    return [path for made in planned(runs, length, keep).values() for path in made]


def rounds_of(paths):
    return {path.job.at["round"] for path in paths}


def test_only_updates_that_are_read_stay():
    one = run("fedavg", 4, evaluate={"name": "clients"}, evaluate_every=2)
    (part,) = parts = planned([one], 4, "needed")
    found = [path for path in parts[part] if "/participant_" in path]
    assert found == [path for round_ in (2, 4) for path in updates(one.recipe, round_, 0)]
    read = segment_rules.files_read([one], map(others, parts))
    assert segment_rules.needed(part, part.jobs(), read) == [
        "models_4", "participants_2", "participants_4", "updates_2", "updates_4",
    ]  # fmt: skip
    # Where the worst clients are left out, of the first distillation: later ones are its own.
    late = run("feddf, one designated, late, judged", 6)
    found = set(kept([late], 4, "needed"))
    assert set(updates(late.recipe, 3, 0)) <= found
    assert not found & {*updates(late.recipe, 2, 0), *updates(late.recipe, 4, 0)}


def test_only_what_is_evaluated_or_read_later_stays():
    one = run("fedavg", 10, evaluate_every=4)
    models = [path for path in kept([one], 25, "needed") if path.endswith("safetensors")]
    assert models == [aggregated_model(one.recipe, round_, 0) for round_ in (4, 8, 10)]
    # Of state the last.
    (state,) = (path for path in kept([run("scaffold", 4)], 4, "all") if "/state." in path)
    assert state.job.at["round"] == 4
    # Rounds 1 to 3 are not distilled: round 4's teacher reads round 3's logits.
    of_late = kept([run("late", 8)], 4, "needed")
    assert rounds_of(path for path in of_late if path.job.stage is logits) == {3, 4}
    # Extractors that are scored with the server's model stay with it.
    split = run("fedgkt", 4, evaluate_every=2, evaluate="split_model")
    of_split = kept([split], 4, "needed")
    assert rounds_of(path for path in of_split if "/participant_" in path) == {2, 4}
    assert {global_model(split.recipe, round_, 0) for round_ in (2, 4)} <= set(of_split)
