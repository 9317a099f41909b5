"""What the equation of a file reads; tests of `why` compare it with what jobs have read."""

import pytest
from tests.shared.graph import lists_of

from fedstage.plan import data_files
from fedstage.plan.segment_rules import made_in_segment
from fedstage.plan.teaching import LOGITS, cached_labels, selected_labels, teacher_logits
from fedstage.plan.training import AGGREGATION, aggregated_model, global_model, updates
from fedstage.plan.training_folder import owners, public_file, training_folder
from fedstage.settings.lines import Line

BASE = {
    "data": "digits",
    "clients": 6,
    "partition": "iid",
    "participants": 4,
    "model": {"cnn_small": {"norm": "batch"}},
    "global_models": 2,
    "client": {"epochs": 1, "batch_size": 8, "learning_rate": 0.1},
    "seed": 0,
}
SHARED = {"local": {"scaffold": {"control": "shared"}}}


def read(path, line):
    found = lists_of(path.job.inputs)
    return {option: found[option] for option in ("start", "state", "public") if option in found}


@pytest.mark.parametrize(
    ("changes", "participant", "aggregation"),
    [
        ({}, [], []),
        ({"local": "scaffold"}, [1], [1]),
        (SHARED, [0, 1], [1]),
        ({"aggregation": {"batch_norm": "local"}}, [1], [1]),
        ({"aggregation": {"batch_norm": "re_estimate"}}, [], []),
        (SHARED | {"aggregation": {"batch_norm": "local"}}, [0, 1], [1]),
    ],
    ids=str,
)
@pytest.mark.parametrize("round", [1, 4])
def test_states_that_a_round_goes_on_from(changes, participant, aggregation, round):
    line = Line.model_validate(BASE | changes)
    start = {"start": [global_model(line, round - 1, 1)]}

    def states(groups):
        files = [
            AGGREGATION(line, round - 1, group, output="new_state") for group in groups if round > 1
        ]
        return {"state": files} if files else {}

    update = updates(line, round, 1)[0]
    assert read(update, line) == start | states(participant)
    public = {}
    if line.aggregation.batch_norm == "re_estimate":
        public = {"public": [data_files.data_file(line.data, "held_out")]}
    expected = start | states(aggregation) | public
    assert read(aggregated_model(line, round, 1), line) == expected
    assert read(AGGREGATION(line, round, 1, output="new_state"), line) == expected


# --- files that only some methods make ------------------------------------------------------------

JUDGED = Line.model_validate(
    BASE
    | {
        "data": {"digits": {"server_validation": 20}},
        "ensemble": "clients",
        "global": "designated",
        "server": {"steps": 2, "batch_size": 8, "learning_rate": 0.1, "drop_worst": "as_released"},
    }
)
OWN = data_files.data_file(JUDGED.data, "server_validation")


def inputs_of(path):
    return lists_of(path.job.inputs)


def test_a_distillation_that_judges_reads_what_it_judges_by():
    inputs = inputs_of(global_model(JUDGED, 3, 0))
    assert inputs["judged"] == artefacts.drop_worst_logits(JUDGED, 3)
    assert inputs["updates"] == updates(JUDGED, 3, 0)
    assert inputs["server_validation"] == [OWN]


def test_logits_on_the_servers_images():
    inputs = inputs_of(LOGITS(JUDGED, 3, 0, "clients", "server_validation"))
    assert inputs["data"] == [OWN]
    assert inputs["models"] == updates(JUDGED, 3, 0)
    assert "aggregated" not in inputs


@pytest.mark.parametrize("images", ["test", "test_own"])
def test_logits_on_the_images_of_a_role(images):
    inputs = inputs_of(LOGITS(JUDGED, 3, 0, "clients", images))
    assert inputs["data"] == [data_files.data_file(JUDGED.data, images)]
    assert "clients" not in inputs


@pytest.mark.parametrize(
    ("kind", "about_start"),
    [("gaussian_3", False), ("dirichlet_3_0.5", False), ("gaussian_3_as_released", True)],
)
def test_logits_of_models_that_are_drawn(kind, about_start):
    inputs = inputs_of(LOGITS(JUDGED, 3, 0, kind, "test"))
    assert inputs["models"] == updates(JUDGED, 3, 0)
    assert inputs["aggregated"] == [aggregated_model(JUDGED, 3, 0)]
    assert inputs.get("start") == ([global_model(JUDGED, 2, 0)] if about_start else None)


@pytest.mark.parametrize(
    ("members", "images", "made"),
    [
        ("clients", "held_out", True),
        ("clients", "server_validation", True),
        ("clients", "test", False),
        ("aggregated", "held_out", False),
    ],
)
def test_a_segment_makes_the_logits_that_it_teaches_and_judges_with(members, images, made):
    origin = find_origin(LOGITS(JUDGED, 3, 0, members, images))
    assert made_in_segment(JUDGED, origin, 1, 4, [0]) is made
    assert not made_in_segment(owners(JUDGED)[1], origin, 1, 4, [0])


def test_a_segment_of_all_groups_makes_the_logits_of_those_that_are_not_distilled():
    server = {"steps": 1, "batch_size": 8, "learning_rate": 0.1}
    taught = {"ensemble": "aggregated", "global": "designated", "server": server}
    line = Line.model_validate(BASE | SHARED | taught)
    origin = find_origin(LOGITS(line, 3, 1, "aggregated", "held_out"))
    assert made_in_segment(line, origin, 1, 4, [0, 1])
    assert not made_in_segment(line, origin, 1, 4, [0])


# --- a server's model, heads and the exchange of logits -------------------------------------------

TAUGHT = {"server": {"steps": 1, "batch_size": 8, "learning_rate": 0.1}, "ensemble": "clients"}
SERVED = BASE | TAUGHT | {"global_models": 3, "server_model": True, "client_groups": "drawn"}
FEDET = Line.model_validate(
    SERVED | {"model": {"cnn_small": {"head": {}}}, "head_transfer": True, "global": "designated"}
)
DSFL = Line.model_validate(
    SERVED | {"model": "cnn_small", "local": "digest", "global": "designated"}
)


def all_updates(line, round):
    return [path for group in (1, 2) for path in updates(line, round, group)]


def test_the_servers_model_takes_the_heads_of_all_slots_and_goes_on_from_there():
    up = aggregated_model(FEDET, 3, 0)
    assert up.endswith("/round_0003/group_0/with_head.safetensors")
    assert lists_of(up.job.inputs) == {
        "line": [f"{training_folder(FEDET)}/line.yaml"],
        "model": [global_model(FEDET, 2, 0)],
        "heads": all_updates(FEDET, 3),
    }
    assert len(all_updates(FEDET, 3)) == 2 * 4
    student = global_model(FEDET, 3, 0)
    assert student.endswith("/round_0003/group_0/distilled.safetensors")
    assert lists_of(student.job.inputs)["start"] == [up]


def test_clients_models_take_the_servers_head_after_it_was_distilled():
    down = global_model(FEDET, 3, 2)
    assert down.endswith("/round_0003/group_2/with_head.safetensors")
    assert lists_of(down.job.inputs) == {
        "line": [f"{training_folder(FEDET)}/line.yaml"],
        "model": [aggregated_model(FEDET, 3, 2)],
        "heads": [global_model(FEDET, 3, 0)],
    }
    training = lists_of(updates(FEDET, 4, 2)[0].job.inputs)
    assert training["start"] == [down]
    assert "said" not in training


def test_clients_that_exchange_logits_read_those_of_all_groups_of_the_round_before():
    first, later = (lists_of(updates(DSFL, round, 1)[0].job.inputs) for round in (1, 3))
    assert "said" not in first
    assert "public" not in first
    said = [LOGITS(DSFL, 2, group, "clients", "held_out") for group in (1, 2)]
    assert later["said"] == said
    assert later["public"] == [data_files.data_file(DSFL.data, "held_out")]
    # The client's own model is in the state of its group.
    assert later["state"] == [AGGREGATION(DSFL, 2, 1, output="new_state")]
    counted = lists_of(aggregated_model(DSFL, 3, 1).job.inputs)
    assert counted["public"] == [data_files.data_file(DSFL.data, "held_out")]


def test_the_servers_model_starts_from_itself_where_no_head_is_transferred():
    student = lists_of(global_model(DSFL, 3, 0).job.inputs)
    assert student["start"] == [global_model(DSFL, 2, 0)]
    assert student["logits"] == teacher_logits(DSFL, 3)


def test_a_segment_of_clients_that_exchange_logits_makes_these_without_students():
    base = owners(DSFL)[1]
    origin = find_origin(LOGITS(base, 3, 1, "clients", "held_out"))
    assert made_in_segment(base, origin, 1, 4, [1, 2])
    other = find_origin(LOGITS(base, 3, 1, "clients", "test"))
    assert not made_in_segment(base, other, 1, 4, [1, 2])


# --- features -------------------------------------------------------------------------------------

GKT = Line.model_validate(
    SERVED
    | {"local": "gkt", "model": "resnet_upper"}
    | {"architectures": ["resnet_upper", "resnet_lower", "resnet_lower"]}
)


def test_the_servers_model_learns_from_all_participants_and_their_samples():
    trained = global_model(GKT, 3, 0)
    assert trained.endswith("/round_0003/group_0/trained.safetensors")
    origin = find_origin(trained)
    assert origin.stage == "feature_training"
    read = read_by(GKT, origin)
    del read["info"]
    assert read == {
        "line": [f"{training_folder(GKT)}/line.yaml"],
        "start": [global_model(GKT, 2, 0)],
        "updates": all_updates(GKT, 3),
        "data": [data_files.data_file(GKT.data, "train")],
        "clients": [data_files.clients_table(GKT)],
    }
    assert lists_of(global_model(GKT, 1, 0).job.inputs)["start"] == [
        data_files.initial_model(GKT.data, GKT.model, GKT.seed, 0)
    ]
    assert made_in_segment(GKT, origin, 1, 4, [0, 1, 2])


def test_clients_that_send_features_hear_the_servers_model_of_the_round_before():
    first, later = (lists_of(updates(GKT, round, 2)[0].job.inputs) for round in (1, 3))
    assert "server_model" not in first
    assert later["server_model"] == [global_model(GKT, 2, 0)]
    assert later["state"] == [AGGREGATION(GKT, 2, 2, output="new_state")]
    assert "said" not in later
    others = lists_of(updates(DSFL, 3, 2)[0].job.inputs)
    assert "server_model" not in others


def test_a_split_models_logits_are_of_a_groups_updates_and_the_servers_model_behind_them():
    read = lists_of(LOGITS(GKT, 3, 1, "split", "test").job.inputs)
    assert read["models"] == updates(GKT, 3, 1)
    assert read["server_model"] == [global_model(GKT, 3, 0)]
    alone = lists_of(LOGITS(GKT, 3, 1, "clients", "test").job.inputs)
    assert alone["models"] == updates(GKT, 3, 1)
    assert "server_model" not in alone


# --- what students start from, and whom they ask --------------------------------------------------


def student_of(**changes):
    server = {"steps": 1, "batch_size": 8, "learning_rate": 0.1} | changes.pop("server", {})
    own = {"ensemble": "clients", "global": "basic", "server": server}
    return Line.model_validate(BASE | own | changes)


ASKED = {"augmentation": "flip", "teacher_images": "augmented"}


def distillation_of(line, round=3, group=0):
    return lists_of(global_model(line, round, group).job.inputs)


def updates_of(line, round):
    return [path for group in (0, 1) for path in updates(line, round, group)]


def test_a_student_starts_from_the_averaged_model_or_from_the_previous_one():
    plain, previous = student_of(), student_of(**{"global": {"basic": {"starts_from": "previous"}}})
    assert distillation_of(plain)["start"] == [aggregated_model(plain, 3, 0)]
    for round in (1, 3):
        start = distillation_of(previous, round)["start"]
        assert start == [global_model(previous, round - 1, 0)]
    # The first round is the same, and what is trained in it.
    assert updates(plain, 1, 0) == updates(previous, 1, 0)
    assert distillation_of(previous)["logits"] == teacher_logits(previous, 3)


def test_who_asks_teachers_reads_models_and_no_logits():
    line = student_of(server=ASKED)
    found = distillation_of(line)
    assert "logits" not in found
    assert found["members"] == updates_of(line, 3)
    assert artefacts.teaching_logits(line) == artefacts.round_logits(line, 3, 0) == []
    origin = find_origin(LOGITS(line, 3, 0, "clients", "held_out"))
    assert not made_in_segment(line, origin, 1, 4, [0])


def test_averages_of_earlier_rounds_are_asked_too():
    line = student_of(
        server=ASKED, ensemble={"aggregated": {"checkpoints": 2}}, **{"global": "designated"}
    )
    expected = [aggregated_model(line, t, group) for t in (2, 3) for group in (0, 1)]
    assert distillation_of(line)["members"] == expected


@pytest.mark.parametrize(("weight", "read"), [(1.0, True), (0.0, False)])
def test_factors_are_of_models_beside_logits(weight, read):
    line = student_of(server={"factor_transfer": {"weight": weight}}, model="resnet8")
    found = distillation_of(line)
    assert found["logits"] == teacher_logits(line, 3)
    assert found.get("members") == (updates_of(line, 3) if read else None)


def test_what_students_learn_beside_their_teacher_reaches_nothing_before_them():
    """KD and buffered distillation share the first round, logits included, and differ then."""
    plain = student_of()
    for server in ({"buffer": {}}, {"epochs": 2, "steps": None}, {"moving_average": {}}):
        other = student_of(server=server)
        assert updates(plain, 1, 0) == updates(other, 1, 0)
        assert teacher_logits(plain, 1) == teacher_logits(other, 1)
        assert global_model(plain, 1, 0) != global_model(other, 1, 0)


def test_the_servers_model_starts_from_its_previous_one_in_any_case():
    plain, previous = (
        Line.model_validate(SERVED | {"global": {"basic": {"starts_from": start}}})
        for start in ("aggregated", "previous")
    )
    for line in (plain, previous):
        found = lists_of(global_model(line, 3, 0).job.inputs)
        assert found["start"] == [global_model(line, 2, 0)]
    # Where it is the only student, the setting changes no file.
    only = [
        Line.model_validate(SERVED | {"global": {"designated": {"starts_from": start}}})
        for start in ("aggregated", "previous")
    ]
    assert training_folder(only[0]) == training_folder(only[1])
    headed = Line.model_validate(
        SERVED
        | {"model": {"cnn_small": {"head": {}}}, "head_transfer": True}
        | {"global": {"designated": {"starts_from": "previous"}}}
    )
    found = lists_of(global_model(headed, 3, 0).job.inputs)
    assert found["start"] == [artefacts.model_with_head(headed, 3, 0)]


# --- labels that are kept -------------------------------------------------------------------------


def test_labels_are_kept_of_all_groups_and_clients_and_students_read_nothing_else():
    changes = {
        "global_models": 3, "server_model": True, "client_groups": "drawn", "ensemble": "clients",
        "global": "designated", "local": {"digest": {"cache": {}}}, "server": TAUGHT["server"],
    }  # fmt: skip
    line = Line.model_validate(BASE | changes)
    path = cached_labels(line, 3)[0]
    assert path.startswith(training_folder(owners(line)[1]))
    assert lists_of(path.job.inputs) == {
        "line": [f"{training_folder(line)}/line.yaml"],
        "logits": teacher_logits(line, 3),
        "before": cached_labels(line, 2),
    }
    first = lists_of(cached_labels(line, 1)[0].job.inputs)
    assert "before" not in first
    for file, option in (
        (updates(line, 4, 1)[0], "said"),
        (global_model(line, 3, 0), "logits"),
    ):
        assert lists_of(file.job.inputs)[option] == [path]


# --- a server that selects ------------------------------------------------------------------------

GEMS = {
    "global_models": 3, "server_model": True, "client_groups": "drawn", "ensemble": "clients",
    "local": {"digest": {"teacher": "server"}}, "distillation": "fedgems", "public": "core",
    "core": {}, "server": TAUGHT["server"],
}  # fmt: skip


def test_a_server_selects_by_what_it_was_and_clients_hear_what_it_became():
    line = Line.model_validate(BASE | GEMS | {"global": "designated"})
    (path,) = selected_labels(line, 3)
    found = lists_of(path.job.inputs)
    assert found["start"] == [global_model(line, 2, 0)]
    assert found["logits"] == teacher_logits(line, 3)
    assert found["before"] == selected_labels(line, 2)
    assert found["public"] == [public_file(line)]
    assert "before" not in lists_of(selected_labels(line, 1)[0].job.inputs)
    assert lists_of(global_model(line, 3, 0).job.inputs)["logits"] == [path]
    first, later = (lists_of(updates(line, round, 1)[0].job.inputs) for round in (1, 4))
    assert later["server_model"] == [global_model(line, 3, 0)]
    assert later["public"] == [public_file(line)]
    assert "said" not in later
    assert not {"server_model", "public"} & first.keys()


def test_what_the_server_learns_reaches_clients_in_the_round_after():
    line = Line.model_validate(BASE | GEMS | {"global": {"designated": {"warm_up": 1}}})
    base = owners(line)[1]
    for round, owner in ((1, base), (2, base), (3, line)):
        (path, *_) = updates(line, round, 1)
        assert path.startswith(f"{training_folder(owner)}/"), round
    heard = lists_of(updates(line, 2, 1)[0].job.inputs)
    assert not {"said", "server_model", "public"} & heard.keys()


# --- clients that learn from the last global models -----------------------------------------------


@pytest.mark.parametrize(
    ("models", "round", "rounds"),
    [(3, 1, []), (3, 2, [1]), (3, 3, [1, 2]), (3, 7, [4, 5, 6]), (1, 7, [6]), (5, 4, [1, 2, 3])],
)
def test_a_client_reads_the_last_global_models_of_its_group(models, round, rounds):
    line = Line.model_validate(BASE | {"local": {"fedgkd": {"models": models}}})
    found = lists_of(updates(line, round, 1)[0].job.inputs)
    assert found.get("history", []) == [global_model(line, t, 1) for t in rounds]
    assert "server_validation" not in found


def test_models_that_vote_are_judged_on_the_servers_samples_as_soon_as_there_are_any():
    data = {"digits": {"server_validation": 20}}
    changes = {"data": data, "local": {"fedgkd": {"teacher": "vote"}}}
    line = Line.model_validate(BASE | changes)
    judged = [
        lists_of(updates(line, round, 0)[0].job.inputs).get("server_validation") for round in (1, 2)
    ]
    assert judged == [None, [data_files.data_file(line.data, "server_validation")]]


def test_a_stale_client_reads_the_models_before_its_own_start():
    changes = {"staleness": {"cyclic": {"delays": [2]}}, "local": {"fedgkd": {"models": 2}}}
    line = Line.model_validate(BASE | changes)
    found = lists_of(updates(line, 6, 0)[0].job.inputs)
    assert found["start"] == [global_model(line, 3, 0)]
    assert found["history"] == [global_model(line, t, 0) for t in (2, 3)]
