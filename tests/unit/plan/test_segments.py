"""Segments make each file of a run once, from files that other segments make before."""

from graphlib import TopologicalSorter

import pytest

from fedstage.plan import segment_files, segments
from fedstage.plan.graph import listed
from fedstage.plan.jobs import jobs_of
from fedstage.plan.one_shot_sharing import alone
from fedstage.plan.runs import Run
from fedstage.plan.training import (
    aggregated_model,
    aggregation,
    global_model,
    logits,
    participants_table,
    received_logits,
    updates,
)
from fedstage.plan.training_folder import FOLDER, owners
from fedstage.settings.groups import client_groups
from fedstage.settings.recipes import Recipe
from fedstage.settings.runs import RunLength

BASE = {
    "data": {"digits": {"server_validation": 20}},
    "clients": 8,
    "partition": {"dirichlet": {"alpha": 0.1}},
    "participants": 4,
    "model": "cnn_small",
    "client": {"epochs": 1, "batch_size": 8, "learning_rate": 0.1},
    "server": {"steps": 1, "batch_size": 8, "learning_rate": 0.1},
    "seed": 0,
}
AGGREGATED = {"aggregated": {"checkpoints": 2}}
ORIGINAL = {"steps": 1, "batch_size": 8, "learning_rate": 0.1, "drop_worst": "as_released"}
ASKED = BASE["server"] | {"augmentation": "flip", "teacher_images": "augmented"}
FACTORS = BASE["server"] | {"factor_transfer": {}}
RELEASED = {"bayesian": {"variant": "as_released", "samples": 2}}
SHARED = {"local": {"scaffold": {"control": "shared"}}, "global_models": 3}
SERVED = {"global_models": 3, "server_model": True, "client_groups": "drawn"}
RANDOM = {"random": {"probabilities": [0.4, 0.3, 0.3]}}
FEDDF = {"ensemble": "clients", "global": "basic"}
IMAGES = {"generator": "fedftg", "public": "generated"}
GEMS = {
    "local": {"digest": {"teacher": "server"}}, "ensemble": "clients", "global": "designated",
    "distillation": "fedgems", "public": "core", "core": {},
}  # fmt: skip
RECIPES = {
    "fedavg": {},
    "scaffold": {"local": "scaffold"},
    "statistics": {
        "model": {"cnn_small": {"norm": "batch"}}, "aggregation": {"batch_norm": "local"},
        "global_models": 2,
    },
    "feddf": {"ensemble": "clients", "global": "basic"},
    "ensemble": {"global_models": 3},
    "fedsdd": {"global_models": 3, "ensemble": AGGREGATED, "global": "designated"},
    "late": {
        "global_models": 2, "ensemble": AGGREGATED, "global": {"basic": {"warm_up": 3}},
    },
    "feddf_original": {"ensemble": "clients", "global": "basic", "server": ORIGINAL},
    "designated_original": {
        "global_models": 2, "ensemble": "clients", "global": {"designated": {"warm_up": 2}},
        "server": ORIGINAL,
    },
    "fedbe": {"ensemble": "bayesian", "global": "basic"},
    "shared": SHARED,
    "shared_fedsdd": SHARED | {"ensemble": AGGREGATED, "global": "designated"},
    "shared_late": SHARED | {"ensemble": AGGREGATED, "global": {"designated": {"warm_up": 2}}},
    "shared_basic": SHARED | {"ensemble": "clients", "global": "basic"},
    "shared_original": SHARED | {
        "ensemble": "clients", "global": "designated", "server": ORIGINAL,
    },
    "released": {"global_models": 2, "ensemble": RELEASED, "global": "designated"},
    "fedet": SERVED | {
        "model": {"cnn_small": {"head": {}}}, "head_sharing": True, "ensemble": "clients",
        "global": "designated",
    },
    "heads_only": SERVED | {"model": {"cnn_small": {"head": {}}}, "head_sharing": True},
    "served_late": SERVED | {"ensemble": "clients", "global": {"basic": {"warm_up": 2}}},
    "dsfl": SERVED | {"local": "digest", "ensemble": "clients", "global": "designated"},
    "scarlet": SERVED | {
        "local": {"digest": {"cache": {"duration": 3}}}, "ensemble": "clients",
        "global": {"designated": {"warm_up": 1}},
    },
    "fedgems": SERVED | GEMS,
    "fedgems_late": SERVED | GEMS | {"global": {"designated": {"warm_up": 2}}},
    "fedgkt": SERVED | {
        "local": "gkt", "model": "resnet_upper",
        "architectures": ["resnet_upper", "resnet_lower", "resnet_lower"],
    },
    "asked": {"ensemble": "clients", "global": "basic", "server": ASKED, "global_models": 2},
    "asked_fedsdd": {
        "global_models": 3, "ensemble": {"aggregated": {"checkpoints": 3}}, "server": ASKED,
        "global": {"designated": {"warm_up": 1}},
    },
    "fedgo": {"ensemble": "odds", "global": {"basic": {"warm_up": 1}}},
    "fedftg": {"ensemble": "clients", "global": "basic"} | IMAGES,
    "fedftg_of_three": IMAGES | {
        "global_models": 3, "ensemble": "clients", "global": {"basic": {"warm_up": 2}},
    },
    "fedftg_withdrawn": IMAGES | {
        "ensemble": "clients", "global": "basic", "staleness": {"cyclic": {"delays": [0, 1]}},
        "withdraw_stale": True,
    },
    "factors": {
        "model": "resnet8", "global_models": 2, "ensemble": AGGREGATED, "server": FACTORS,
        "global": {"designated": {"starts_from": "previous"}},
    },
    "previous": {
        "global_models": 2, "ensemble": "clients", "global": {"basic": {"starts_from": "previous"}},
    },
    "previous_late": {
        "global_models": 2, "ensemble": "clients",
        "global": {"designated": {"starts_from": "previous", "warm_up": 2}},
    },
    "stragglers": FEDDF | {"staleness": {"cyclic": {"delays": [0, 1, 3]}}},
    "never": FEDDF | {"staleness": "never"},
    "withdrawn": FEDDF | {"staleness": {"cyclic": {"delays": [0, 1]}}, "withdraw_stale": True},
    "late_and_withdrawn": {
        "global_models": 2, "ensemble": AGGREGATED, "global": {"designated": {"warm_up": 1}},
        "staleness": {"cyclic": {"delays": [0, 1]}}, "withdraw_stale": True,
    },
    "random": {
        "global_models": 2, "ensemble": AGGREGATED, "global": "designated", "staleness": RANDOM,
        "aggregation": {"server_optimizer": "adam", "stale": "changes"},
    },
    "random_judged": {
        "ensemble": "clients", "global": "basic", "server": ORIGINAL, "staleness": RANDOM,
    },
    "random_fedbe": {"ensemble": "bayesian", "global": "basic", "staleness": RANDOM},
    "withdrawn_before_server": SERVED | {
        "ensemble": "clients", "global": "designated", "staleness": {"cyclic": {"delays": [1, 0]}},
        "withdraw_stale": True,
    },
    "stale_kd": {
        "ensemble": "clients", "global": {"basic": {"starts_from": "previous"}}, "server": ASKED,
        "participation": "in_turn", "staleness": {"cyclic": {"delays": [0, 1]}},
    },
    "withdrawn_kd": {
        "ensemble": "clients", "global": {"basic": {"starts_from": "previous"}},
        "staleness": {"cyclic": {"delays": [0, 1]}}, "withdraw_stale": True,
    },
    "random_asked": {
        "global_models": 2, "ensemble": {"aggregated": {"checkpoints": 3}}, "server": ASKED,
        "global": "designated", "staleness": RANDOM,
    },
    "fedgkd": {"local": {"fedgkd": {"models": 3}}},
    "fedgkd_feddf": FEDDF | {"local": {"fedgkd": {"models": 3, "teacher": "vote"}}},
    "fedgkd_fedsdd": {
        "local": "fedgkd", "global_models": 3, "ensemble": AGGREGATED,
        "global": {"designated": {"warm_up": 2}},
    },
    "fedgkd_random": FEDDF | {"local": {"fedgkd": {"models": 2}}, "staleness": RANDOM},
    "fedmd": {
        "global_models": 2, "client_groups": "drawn", "local": "digest", "ensemble": "clients",
    },
}  # fmt: skip


LENGTHS = (1, 3, 4, 25)


def run(name, rounds, **length):
    recipe = Recipe.model_validate(BASE | RECIPES[name])
    return Run({}, recipe, RunLength(rounds=rounds, **length))


def planned(runs, length, keep="all"):
    """Return the files that each segment declares."""
    trained, logits = segments.plan(runs, length)
    parts = [*trained, *logits]
    read = segment_files.files_read(runs, map(others, parts))
    kept = {part: segment_files.rounds_kept(part, part.jobs(), keep, read) for part in trained}
    return {part: segment_files.outputs(part.jobs(), kept.get(part)) for part in parts}


def others(part):
    """Return the files of rounds that a segment reads, and others make."""
    return [path for path in segment_files.inputs(part.jobs())[1] if of_a_round(path)]


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
    runs = [run(name, rounds) for name in RECIPES for rounds in (5, 7)]
    for length in LENGTHS:
        paths = [path for made in planned(runs, length).values() for path in made]
        assert len(paths) == len(set(paths)) > 2000


@pytest.mark.parametrize("name", RECIPES)
def test_segments_make_what_the_jobs_of_a_run_make_in_an_order_that_inputs_allow(name):
    run_of_seven = run(name, 7)
    jobs = {job.node for job in jobs_of(run_of_seven.recipe, 7)}
    for length in LENGTHS:
        parts = planned([run_of_seven], length)
        found = [job for part in parts for job in part.jobs()]
        assert len(found) == len(set(found))
        assert jobs <= set(found), jobs - set(found)
        # More than global models follow from: averages that only teach, and clients' last logits.
        more = {job.stage.name for job in set(found) - jobs}
        assert more <= {"local_training", "aggregation", "logits", "cached_labels"}, more
        for part in parts:
            made = set(others(part))
            for job in part.jobs():
                read = [path for paths in job.inputs.values() for path in listed(paths)]
                assert {path for path in read if of_a_round(path)} - {job.inputs["recipe"]} <= made
                made |= set(job.files.values())
        maker = {path: part for part, made in parts.items() for path in made}
        # Raises CycleError.
        TopologicalSorter(
            {part: {maker[path] for path in others(part)} for part in parts}
        ).prepare()


@pytest.mark.parametrize("name", RECIPES)
def test_what_is_read_stays_and_is_made(name):
    for length in (1, 4, 25):
        for evaluate in ("global_model", "clients", "aggregated"):
            runs = [run(name, 7, evaluate={"name": evaluate}, evaluate_every=3)]
            parts = planned(runs, length, "needed")
            made = {path for files in parts.values() for path in files}
            read = segment_files.files_read(runs, map(others, parts))
            assert {path for path in read if of_a_round(path)} <= made
            assert made <= {path for files in planned(runs, length).values() for path in files}
            for round_ in (3, 6, 7):
                assert all(participants_table(runs[0].recipe, round_, group) in made
                           for group in client_groups(runs[0].recipe))  # fmt: skip


# --- which groups are in one segment --------------------------------------------------------------


def test_groups_that_no_teacher_reaches_run_ahead_of_the_student():
    one = run("fedsdd", 8)
    parts, base = planned([one], 4), owners(one.recipe)[1]
    assert places(parts, one.recipe) == [((0,), 1, 4), ((0,), 5, 8)]
    assert places(parts, base) == [
        ((0,), 1, 1), ((1,), 1, 4), ((1,), 5, 8), ((2,), 1, 4), ((2,), 5, 8),
    ]  # fmt: skip


def test_students_that_need_one_another_are_in_one_segment():
    one = run("late", 8)
    assert places(planned([one], 4), one.recipe) == [((0, 1), 4, 4), ((0, 1), 5, 8)]


def test_groups_that_share_control_variates_are_in_one_segment_that_has_several_rounds():
    recipe = owners(run("shared", 8).recipe)[1]
    parts = planned([run("shared", 8)], 4)
    assert places(parts, recipe) == [((0, 1, 2), 1, 4), ((0, 1, 2), 5, 8)]
    first, second = parts
    states = [aggregation(recipe, 4, group, output="new_state") for group in range(3)]
    assert [path for path in parts[first] if "/state." in path] == states
    assert [path for path in others(second) if "/state." in path] == states
    assert len(planned([run("shared", 4)], 1)) == 3 * 4


def test_with_shared_control_variates_a_distillation_takes_all_groups_over():
    """Rounds 1 to 3 are not distilled, so that round 4 starts from a distilled main model only."""
    one = run("shared_late", 8)
    parts, base = planned([one], 4), owners(one.recipe)[1]
    assert places(parts, base) == [((0, 1, 2), 1, 3), ((1, 2), 4, 4)]
    assert places(parts, one.recipe) == [((0, 1, 2), 3, 4), ((0, 1, 2), 5, 8)]
    # What another method trains without a distillation anyway is in one segment with the rest.
    both = planned([one, run("shared", 6)], 4)
    assert places(both, base) == [((0, 1, 2), 1, 3), ((0, 1, 2), 4, 4), ((0, 1, 2), 5, 6)]


def test_groups_that_take_the_servers_head_are_in_one_segment_from_the_first_round_on():
    """What trains in round 1 has no head of the server's yet, and is of any run's without one."""
    one = run("fedet", 6)
    parts, base = planned([one], 4), owners(one.recipe)[1]
    assert places(parts, base) == [((1,), 1, 1), ((2,), 1, 1)]
    assert places(parts, one.recipe) == [((0, 1, 2), 1, 4), ((0, 1, 2), 5, 6)]


def test_clients_that_exchange_logits_are_in_one_segment_and_run_ahead_of_the_server():
    one = run("dsfl", 6)
    parts, base = planned([one], 4), owners(one.recipe)[1]
    assert places(parts, base) == [((1, 2), 1, 4), ((1, 2), 5, 6)]
    assert places(parts, one.recipe) == [((0,), 1, 4), ((0,), 5, 6)]
    first, second = (part for part in parts if part.recipe == base)
    received = set(received_logits(base, 4))
    assert len(received) == 2
    assert received <= set(parts[first]) & set(others(second))


def test_the_servers_model_has_no_segment_where_nothing_teaches_it():
    assert [part.groups for part in planned([run("fedmd", 3)], 4)] == [(0, 1)]
    assert {part.groups for part in planned([run("served_late", 2)], 4)} == {(1,), (2,)}


def test_clients_that_exchange_features_are_in_one_segment_with_the_servers_model():
    one = run("fedgkt", 6)
    for length in (1, 4):
        parts = list(planned([one], length))
        assert {(part.recipe, part.groups) for part in parts} == {(one.recipe, (0, 1, 2))}
        assert [part.last for part in parts] == ([4, 6] if length == 4 else [*range(1, 7)])


def test_logits_that_only_another_folder_reads_have_segments_of_their_own():
    one = run("fedsdd", 6)
    found = [part for part in planned([one], 4) if isinstance(part, segments.LogitsSegment)]
    spoken = {(part.group, part.rounds) for part in found}
    assert spoken == {(0, (1,)), (1, (1, 2, 3, 4)), (1, (5, 6)), (2, (1, 2, 3, 4)), (2, (5, 6))}


def test_logits_stay_for_the_teachers_of_the_next_segment():
    """Rounds 1 to 3 are not distilled: round 4's teacher reads round 3's logits."""
    paths = [path for made in planned([run("late", 8)], 4, "needed").values() for path in made]
    rounds = {path.job.at["round"] for path in paths if path.job.stage is logits}
    assert rounds == {3, 4}


def test_runs_without_federation_have_no_segments():
    recipe = alone(run("fedavg", 4).recipe, 4, pooled=True)
    assert segments.plan([Run({}, recipe, RunLength(rounds=4, training="pooled"))], 4) == ([], [])


# --- what stays -----------------------------------------------------------------------------------


def test_of_state_the_last_stays():
    (part,) = parts = planned([run("scaffold", 4)], 4)
    states = [path for path in parts[part] if path.endswith("state.safetensors")]
    assert states == [aggregation(part.recipe, 4, 0, output="new_state")]


def test_only_updates_that_are_read_stay():
    one = run("fedavg", 4, evaluate={"name": "clients"}, evaluate_every=2)
    parts = planned([one], 4, "models")
    (part,) = parts
    found = [path for path in parts[part] if "/participant_" in path]
    assert found == [path for round_ in (2, 4) for path in updates(one.recipe, round_, 0)]
    read = segment_files.files_read([one], map(others, parts))
    kept = segment_files.rounds_kept(part, part.jobs(), "models", read)
    assert part.options(kept) == (
        "--first 1 --last 4 --groups 0"
        " --kept-updates 2 4 --kept-models 1 2 3 4"
        " --kept-participants 1 2 3 4 --kept-logits 1 2 3 4"
    )


def test_updates_that_a_student_starts_from_anew_stay():
    """Where the worst clients are left out, of the first distillation: later ones are its own."""
    one = run("designated_original", 6)
    found = {path for made in planned([one], 4, "models").values() for path in made}
    assert set(updates(one.recipe, 3, 0)) <= found
    assert not found & {*updates(one.recipe, 2, 0), *updates(one.recipe, 4, 0)}


def test_only_what_an_evaluation_reads_stays():
    one = run("fedavg", 10, evaluate_every=4)
    paths = [path for made in planned([one], 25, "needed").values() for path in made]
    models = [path for path in paths if path.endswith("safetensors")]
    assert models == [aggregated_model(one.recipe, round_, 0) for round_ in (4, 8, 10)]


def test_extractors_that_are_scored_with_the_servers_model_stay_with_it():
    one = run("fedgkt", 4, evaluate_every=2, evaluate="split_model")
    (made,) = planned([one], 4, "needed").values()
    assert {path.job.at["round"] for path in made if "/participant_" in path} == {2, 4}
    assert {global_model(one.recipe, round_, 0) for round_ in (2, 4)} <= set(made)
