import pytest

from fedstage.plan import segment_files, segment_rules, segments
from fedstage.plan.one_shot_sharing import alone
from fedstage.plan.runs import Run
from fedstage.plan.taught import is_distilled
from fedstage.plan.teaching import DISTILLATION
from fedstage.plan.training import (
    AGGREGATION,
    LOCAL_TRAINING,
    aggregated_model,
    global_model,
    participants_table,
    updates,
)
from fedstage.plan.training_folder import owners
from fedstage.settings.groups import client_groups
from fedstage.settings.lines import Line
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
LINES = {
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
        "model": {"cnn_small": {"head": {}}}, "head_transfer": True, "ensemble": "clients",
        "global": "designated",
    },
    "heads_only": SERVED | {"model": {"cnn_small": {"head": {}}}, "head_transfer": True},
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


def run(name, rounds, **length):
    line = Line.model_validate(BASE | LINES[name])
    return Run({}, line, RunLength(rounds=rounds, **length))


def everything(part):
    return segment_files.rounds_kept(part, "all", ())


def files_of(runs, length, keep="all"):
    """Every declared output, as often as segments declare it."""
    trained, logits = segments.plan(runs, length)
    read = segment_files.files_read(runs, map(segment_files.inputs, [*trained, *logits]))
    paths = [
        path
        for part in trained
        for path in segment_files.segment_outputs(part, segment_files.rounds_kept(part, keep, read))
    ]
    return paths + [path for part in logits for path in segment_files.logits_outputs(part)]


@pytest.mark.parametrize(
    ("first", "stops", "expected"),
    [
        (1, {8}, [(1, 4), (5, 8)]),
        (1, {6}, [(1, 4), (5, 6)]),
        (1, {3, 10}, [(1, 3), (4, 4), (5, 8), (9, 10)]),
        (4, {10}, [(4, 4), (5, 8), (9, 10)]),
        (3, {2}, []),
        (1, {1}, [(1, 1)]),
    ],
)
def test_rounds_are_cut_at_multiples_and_stops(first, stops, expected):
    assert segments.cut(first, stops, 4) == expected


@pytest.mark.parametrize("length", [1, 3, 4, 25])
def test_each_file_is_made_by_one_segment(length):
    runs = [run(name, rounds) for name in LINES for rounds in (5, 7)]
    paths = files_of(runs, length)
    assert len(paths) == len(set(paths))


@pytest.mark.parametrize("length", [1, 3, 4, 25])
@pytest.mark.parametrize("name", LINES)
def test_a_run_finds_everything_that_its_evaluation_reads(name, length):
    one = run(name, 7)
    made = set(files_of([one], length))
    for round in range(1, 8):
        main = global_model(one.line, round, 0)
        assert main in made or main == global_model(one.line, 0, 0)
        for group in client_groups(one.line):
            assert participants_table(one.line, round, group) in made


@pytest.mark.parametrize("length", [1, 3, 4, 25])
@pytest.mark.parametrize("name", LINES)
def test_inputs_are_made_by_other_segments_and_there_is_no_cycle(name, length):
    trained, logits = segments.plan([run(name, 7)], length)
    parts = {part: segment_files.segment_outputs(part, everything(part)) for part in trained}
    parts |= {part: segment_files.logits_outputs(part) for part in logits}
    reads = {part: segment_files.inputs(part) for part in [*trained, *logits]}
    maker = {path: part for part, paths in parts.items() for path in paths}
    done = set()
    while len(done) < len(parts):
        ready = [
            part
            for part in parts
            if part not in done
            and all(
                maker[path] in done
                for path in reads[part]
                if "/initial_models/" not in path and "/participation/" not in path
            )
        ]
        assert ready, "a cycle, or an input that nobody makes"
        done.update(ready)


def test_undistilled_groups_run_ahead_of_the_student():
    trained, _ = segments.plan([run("fedsdd", 8)], 4)
    base = owners(run("fedsdd", 8).line)[1]
    own = [part for part in trained if part.line != base]
    assert [(part.groups, part.first, part.last) for part in own] == [((0,), 1, 4), ((0,), 5, 8)]
    others = {(part.groups, part.first, part.last) for part in trained if part.line == base}
    assert others == {
        ((0,), 1, 1), ((1,), 1, 4), ((1,), 5, 8), ((2,), 1, 4), ((2,), 5, 8),
    }  # fmt: skip


def test_students_that_need_one_another_share_a_job():
    trained, _ = segments.plan([run("late", 8)], 4)
    own = [part for part in trained if part.line.global_trainer]
    assert [(part.groups, part.first, part.last) for part in own] == [
        ((0, 1), 4, 4),
        ((0, 1), 5, 8),
    ]
    assert AGGREGATION.job(own[0].line, 4, 0).config == owners(own[0].line)[1]


def test_outputs_stand_in_the_order_in_which_they_are_made():
    trained, _ = segments.plan([run("fedsdd", 4)], 4)
    for part in trained:
        outputs = segment_files.segment_outputs(part, everything(part))
        rounds = [path.partition("/round_")[2][:4] for path in outputs]
        assert rounds == sorted(rounds)


def test_rounds_with_shared_control_variates_read_the_states_of_all_groups():
    trained, _ = segments.plan([run("shared", 4)], 1)
    assert len(trained) == 3 * 4
    for part in trained:
        states = [path for path in segment_files.segment_inputs(part) if "/state." in path]
        before = [
            AGGREGATION(part.line, part.first - 1, group, output="new_state") for group in range(3)
        ]
        assert states == (before if part.first > 1 else [])


def places(parts, line):
    return [(part.groups, part.first, part.last) for part in parts if part.line == line]


def test_groups_that_share_control_variates_share_a_job():
    line = owners(run("shared", 8).line)[1]
    trained, _ = segments.plan([run("shared", 8)], 4)
    assert places(trained, line) == [((0, 1, 2), 1, 4), ((0, 1, 2), 5, 8)]
    # The last state of all groups is kept: the next segment, and each group in it, starts from it.
    states = [AGGREGATION(line, 4, group, output="new_state") for group in range(3)]
    assert set(states) <= set(segment_files.segment_outputs(trained[0], everything(trained[0])))
    assert [
        path for path in segment_files.segment_inputs(trained[1]) if "/state." in path
    ] == states


def test_with_shared_control_variates_a_distillation_takes_all_groups_over():
    """Rounds 1 to 3 are undistilled, so that round 4 starts from a distilled main model only."""
    one = run("shared_late", 8)
    trained, logits = segments.plan([one], 4)
    base = owners(one.line)[1]
    assert places(trained, base) == [((0, 1, 2), 1, 3), ((1, 2), 4, 4)]
    assert places(trained, one.line) == [((0, 1, 2), 3, 4), ((0, 1, 2), 5, 8)]
    spoken = {(part.group, part.rounds) for part in logits}
    assert spoken == {(0, (2, 3)), (1, (2, 3)), (2, (2, 3)), (1, (4,)), (2, (4,))}
    # What is trained undistilled anyway, for another method, is one job with the rest.
    both, _ = segments.plan([one, run("shared", 6)], 4)
    assert places(both, base) == [
        ((0, 1, 2), 1, 3), ((0, 1, 2), 4, 4), ((0, 1, 2), 5, 6),
    ]  # fmt: skip


def test_a_distilled_segment_starts_from_the_states_that_it_has_not_made():
    one = run("shared_late", 8)
    trained, _ = segments.plan([one], 25)
    (own,) = [part for part in trained if part.line == one.line]
    states = [path for path in segment_files.segment_inputs(own) if "/state." in path]
    # The main model goes on in round 4 from round 3, the others in round 5 from round 4: there the
    # main model's state is the segment's own.
    expected = [AGGREGATION(one.line, 3, group, output="new_state") for group in range(3)]
    expected += [AGGREGATION(one.line, 4, group, output="new_state") for group in (1, 2)]
    assert sorted(states) == sorted(expected)


@pytest.mark.parametrize("length", [1, 3, 25])
@pytest.mark.parametrize("name", [name for name in LINES if name.startswith("shared")])
def test_every_group_trains_every_round_once(name, length):
    one = run(name, 7)
    trained, _ = segments.plan([one], length)
    found = [
        (AGGREGATION.job(part.line, t, group).config, t, group)
        for part in trained
        for t in range(part.first, part.last + 1)
        for group in part.groups
        if AGGREGATION.job(part.line, t, group).config == part.line
    ]
    assert len(found) == len(set(found))
    wanted = {
        (AGGREGATION.job(one.line, t, group).config, t, group)
        for t in range(1, 8)
        for group in range(3)
    }
    assert set(found) == wanted


def test_statistics_of_clients_are_kept_as_state():
    trained, _ = segments.plan([run("statistics", 6)], 4)
    states = [
        path
        for part in trained
        for path in segment_files.segment_outputs(part, everything(part))
        if "/state." in path
    ]
    assert len(states) == 2 * 2
    reads = [
        path for part in trained for path in segment_files.segment_inputs(part) if "/state." in path
    ]
    assert sorted(reads) == sorted(path for path in states if "round_0004" in path)


def test_state_is_kept_after_the_last_round_only():
    (part,) = segments.plan([run("scaffold", 4)], 4)[0]
    outputs = segment_files.segment_outputs(part, everything(part))
    states = [path for path in outputs if path.endswith("state.safetensors")]
    assert states == [AGGREGATION(part.line, 4, 0, output="new_state")]


def test_only_updates_that_somebody_reads_are_kept():
    evaluated = run("fedavg", 4, evaluate={"name": "clients"}, evaluate_every=2)
    trained, logits = segments.plan([evaluated], 4)
    (part,) = trained
    read = segment_files.files_read([evaluated], map(segment_files.inputs, [*trained, *logits]))
    kept = segment_files.rounds_kept(part, "models", read)
    updates = [path for path in segment_files.segment_outputs(part, kept) if "/slot_" in path]
    assert updates == [path for round in (2, 4) for path in updates(evaluated.line, round, 0)]
    assert kept.models == kept.participants == kept.logits == (1, 2, 3, 4)
    assert segment_rules.options(part, kept) == (
        "--first 1 --last 4 --groups 0"
        " --kept-updates 2 4 --kept-models 1 2 3 4"
        " --kept-participants 1 2 3 4 --kept-logits 1 2 3 4"
    )


@pytest.mark.parametrize("length", [1, 3, 4, 25])
@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("evaluate", ["global_model", "clients", "aggregated"])
def test_whatever_a_job_reads_is_kept_and_little_else(name, length, evaluate):
    runs = [run(name, 7, evaluate={"name": evaluate}, evaluate_every=3)]
    made = set(files_of(runs, length, "needed"))
    trained, logits = segments.plan(runs, length)
    read = segment_files.files_read(runs, map(segment_files.inputs, [*trained, *logits]))
    outside = {path for path in read if "/training/" not in path}
    assert all("/initial_models/" in path or "/participation/" in path for path in outside)
    assert read - made == outside
    every = set(files_of(runs, length))
    assert made <= every
    if length == 25 and name == "fedavg":
        assert len(made) < len(every) / 2


def test_only_what_an_evaluation_reads_is_kept():
    runs = [run("fedavg", 10, evaluate_every=4)]
    models = [path for path in files_of(runs, 25, "needed") if path.endswith("safetensors")]
    assert models == [aggregated_model(runs[0].line, round, 0) for round in (4, 8, 10)]


def test_logits_stay_for_the_teachers_of_the_next_segment():
    runs = [run("late", 8)]
    logits = [path for path in files_of(runs, 4, "needed") if "/logits/" in path]
    # Rounds 1 to 3 are undistilled: round 4's teacher reads round 3's, which have a job of their
    # own. Of the students' own logits only those of round 4 pass a border between segments.
    rounds = sorted({path.partition("/round_")[2][:4] for path in logits})
    assert rounds == ["0003", "0004"]


def test_jobs_wait_for_the_first_file_of_a_segment():
    assert segment_files.first_of_each([["a", "b"], ["c"]]) == {"a": "a", "b": "a", "c": "c"}


def kept_updates(one):
    trained, logits = segments.plan([one], 4)
    read = segment_files.files_read([one], map(segment_files.inputs, [*trained, *logits]))
    kept = {part: segment_files.rounds_kept(part, "models", read) for part in trained}
    paths = [path for part in trained for path in segment_files.segment_outputs(part, kept[part])]
    assert {path for part in logits for path in segment_files.logits_models(part)} <= set(paths)
    return [path for path in paths if "/slot_" in path]


def test_updates_that_a_bayesian_ensemble_is_drawn_from_are_kept():
    evaluated = run("fedavg", 4, evaluate={"name": "bayesian"}, evaluate_every=3)
    expected = [path for round in (3, 4) for path in updates(evaluated.line, round, 0)]
    assert kept_updates(evaluated) == expected


@pytest.mark.parametrize(("name", "fork"), [("feddf_original", 1), ("designated_original", 3)])
def test_updates_that_are_averaged_anew_at_the_first_distillation_are_kept(name, fork):
    one = run(name, 6)
    found = set(kept_updates(one))
    assert set(updates(one.line, fork, 0)) <= found
    assert not found & {*updates(one.line, fork + 1, 0)}
    assert fork == 1 or not found & {*updates(one.line, fork - 1, 0)}


def test_where_the_worst_are_left_out_the_first_distillation_reads_updates_of_others():
    one = run("designated_original", 6)
    (part, *_) = [part for part in segments.plan([one], 4)[0] if part.line == one.line]
    assert (part.first, part.groups) == (3, (0,))
    reads = segment_files.segment_inputs(part)
    assert set(updates(one.line, 3, 0)) <= set(reads)
    assert set(artefacts.drop_worst_logits(one.line, 3)) <= set(reads)
    assert not set(updates(one.line, 4, 0)) & set(reads)


def test_runs_without_federation_have_no_segments():
    line = alone(run("fedavg", 4).line, 4, pooled=True)
    assert segments.plan([Run({}, line, RunLength(rounds=4, training="pooled"))], 4) == ([], [])


# --- groups that need one another -----------------------------------------------------------------


def test_groups_that_take_the_servers_head_share_a_job_from_the_first_round_on():
    """What trains in round 1 has no head of the server's yet, and is the undistilled line's."""
    one = run("fedet", 6)
    trained, logits = segments.plan([one], 4)
    base = owners(one.line)[1]
    assert places(trained, base) == [((1,), 1, 1), ((2,), 1, 1)]
    assert places(trained, one.line) == [((0, 1, 2), 1, 4), ((0, 1, 2), 5, 6)]
    assert {(part.line, part.rounds) for part in logits} == {(base, (1,))}
    (first,) = [part for part in trained if (part.line, part.first) == (one.line, 1)]
    assert set(updates(base, 1, 2)) <= set(segment_files.segment_inputs(first))


def test_clients_that_exchange_logits_are_one_job_which_says_them_itself():
    one = run("dsfl", 6)
    trained, logits = segments.plan([one], 4)
    assert logits == []
    base = owners(one.line)[1]
    assert places(trained, base) == [((1, 2), 1, 4), ((1, 2), 5, 6)]
    assert places(trained, one.line) == [((0,), 1, 4), ((0,), 5, 6)]
    said = set(artefacts.said_before(base, 5))
    assert len(said) == 2
    first, second = (part for part in trained if part.line == base)
    assert said <= set(segment_files.segment_outputs(first, everything(first)))
    assert said <= set(segment_files.inputs(second))
    assert not [path for path in segment_files.inputs(first) if "/logits/" in path]


def test_the_servers_model_has_no_segment_where_nothing_teaches_it():
    trained, _ = segments.plan([run("fedmd", 3)], 4)
    assert [(part.groups, part.first, part.last) for part in trained] == [((0, 1), 1, 3)]
    trained, _ = segments.plan([run("served_late", 2)], 4)
    assert {part.groups for part in trained} == {(1,), (2,)}


@pytest.mark.parametrize("length", [1, 4])
def test_clients_that_exchange_features_are_one_job_with_the_servers_model(length):
    one = run("fedgkt", 6)
    trained, logits = segments.plan([one], length)
    assert logits == []
    ends = [4, 6] if length == 4 else range(1, 7)
    assert [part.last for part in trained] == list(ends)
    assert {(part.line, part.groups) for part in trained} == {(one.line, (0, 1, 2))}
    later = trained[1]
    last = trained[0].last
    read = segment_files.inputs(later)
    made = segment_files.segment_outputs(trained[0], everything(trained[0]))
    needed = [global_model(one.line, last, 0)]
    needed += [AGGREGATION(one.line, last, group, output="new_state") for group in (1, 2)]
    assert set(needed) <= set(read) & set(made)
    # Written after the updates that it was trained on.
    assert made.index(needed[0]) > made.index(updates(one.line, last, 2)[-1])


def test_extractors_that_are_scored_with_the_servers_model_are_kept_with_it():
    one = run("fedgkt", 4, evaluate_every=2, evaluate="split_model")
    (part,) = segments.plan([one], 4)[0]
    read = segment_files.files_read([one], [segment_files.inputs(part)])
    kept = segment_files.rounds_kept(part, "needed", read)
    assert kept.updates == kept.participants == (2, 4)
    assert {2, 4} <= set(kept.models)


STALE = [name for name in LINES if "staleness" in LINES[name]]


@pytest.mark.parametrize("length", [1, 3, 4, 25])
@pytest.mark.parametrize("name", STALE)
def test_a_segment_of_stale_participants_names_all_that_its_stages_read(name, length):
    """Each reads what it has made before, or what is among the inputs."""
    trained, _ = segments.plan([run(name, 7)], length)
    for part in trained:
        line, known = part.line, set(segment_files.inputs(part))
        for round in range(part.first, part.last + 1):
            own = segment_files.trained_by(part, round)
            steps = [
                LOCAL_TRAINING.job(line, round, group, slot).inputs
                for group in own
                for slot in segment_files.own_slots(line, round, group)
            ]
            steps += [AGGREGATION.job(line, round, group).inputs for group in own]
            known.update(AGGREGATION(line, round, group, output="new_state") for group in own)
            taught = [group for group in part.groups if is_distilled(line, round, group)]
            steps += [DISTILLATION.job(line, round, group).inputs for group in taught]
            known.update(
                DISTILLATION(line, round, group, output="new_generator") for group in taught
            )
            known.update(
                path
                for path in segment_files.segment_outputs(part, everything(part))
                if f"/round_{round:04d}/" in path
            )
            paths = {
                path for step in steps for some in edges.lists_of(step).values() for path in some
            }
            read = {path for path in paths if "/round_" in path or "/initial_models/" in path}
            assert read <= known, sorted(read - known)
