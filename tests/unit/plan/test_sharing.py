import re
from functools import cache
from importlib import import_module
from itertools import chain, product
from typing import get_args

import pytest
from pydantic import BaseModel

from fedstage.plan.digests import SCHEMA_VERSION, as_json, canonical, digest
from fedstage.plan.identity import (
    data_id,
    initial_id,
    is_stateful_name,
    local_id,
    participation_id,
    partition_id,
)
from fedstage.plan.one_shot_sharing import alone
from fedstage.plan.participants import binding
from fedstage.plan.taught import first_distillation, is_distilled, takes_features, takes_head
from fedstage.plan.training import AGGREGATION
from fedstage.plan.training_folder import owners, training_id
from fedstage.settings.base import Choice, Settings, subclasses
from fedstage.settings.data import Digits, ParquetData
from fedstage.settings.equivalences import simplest
from fedstage.settings.exchange import (
    clients_keep_state,
    exchanges_logits,
    keeps_state,
    keeps_statistics,
    students,
    teaches_public,
    weights_travel,
)
from fedstage.settings.groups import group_slots, model_of
from fedstage.settings.lines import Line, LocalLine

CLIENT = {"epochs": 1, "batch_size": 16, "learning_rate": 0.05}
SERVER = {"steps": 20, "batch_size": 16, "learning_rate": 0.01}
BASE = {
    "data": "digits",
    "clients": 10,
    "partition": {"dirichlet": {"alpha": 0.1}},
    "participants": 8,
    "model": "cnn_small",
    "client": CLIENT,
    "seed": 0,
}
DISTILLED = {"ensemble": "clients", "global": "basic", "server": SERVER}


def line(**changes):
    return Line.model_validate({**BASE, **changes})


def distilled_line(**changes):
    return line(**{**DISTILLED, **changes})


# --- which distillation reaches what --------------------------------------------------------------

ROUNDS = range(1, 7)
TRAINERS = [None, *product(("basic", "designated"), range(4))]
BAYESIAN = {"as_published": "bayesian", "as_released": {"bayesian": {"variant": "as_released"}}}
ENSEMBLES = ["clients", *BAYESIAN, *range(1, 5)]


def combination(groups, trainer, ensemble, control="per_model"):
    local = {"scaffold": {"control": control}}
    changes = {"global_models": groups, "ensemble": "clients", "server": SERVER, "local": local}
    if ensemble in BAYESIAN:
        changes["ensemble"] = BAYESIAN[ensemble]
    elif ensemble != "clients":
        changes["ensemble"] = {"aggregated": {"checkpoints": ensemble}}
    if trainer is not None:
        changes["global"] = {trainer[0]: {"warm_up": trainer[1]}}
    return line(**changes)


def nodes_read(node, groups, trainer, ensemble, control="per_model"):
    """Name what a file of an unshared run is made from, by the definitions of the method alone."""
    kind, t, k = node
    if kind == "initial":
        return []
    if kind == "global" and t == 0:
        return [("initial", 0, k)]
    if kind == "global":
        student = trainer is not None and (trainer[0] == "basic" or k == 0) and t > trainer[1]
        return [("distillation" if student else "aggregated", t, k)]
    if kind == "update":
        variates = range(groups) if control == "shared" else [k]
        return [("global", t - 1, k), *(("state", t - 1, j) for j in variates if t > 1)]
    if kind == "aggregated":
        return [("update", t, k), ("global", t - 1, k)]
    if kind == "state":
        return [("update", t, k), *([("state", t - 1, k)] if t > 1 else [])]
    assert kind == "distillation"
    if ensemble == "clients":
        members = [("update", t, j) for j in range(groups)]
    elif ensemble in BAYESIAN:
        kinds = [("update", t), ("aggregated", t)]
        kinds += [("global", t - 1)] if ensemble == "as_released" else []
        members = [(*kind, j) for kind in kinds for j in range(groups)]
    else:
        members = [
            ("aggregated", s, j) for s in range(1, t + 1) if s > t - ensemble for j in range(groups)
        ]
    return [("aggregated", t, k), *members]


def reached_by_distillation(*method):
    @cache
    def reached(node):
        parents = nodes_read(node, *method)
        return any(parent[0] == "distillation" or reached(parent) for parent in parents)

    return reached


@pytest.mark.parametrize("groups", [1, 2, 3, 4])
@pytest.mark.parametrize("trainer", TRAINERS, ids=str)
@pytest.mark.parametrize("ensemble", ENSEMBLES, ids=lambda e: e if isinstance(e, str) else f"R{e}")
@pytest.mark.parametrize("control", ["per_model", "shared"])
def test_owner_is_undistilled_exactly_where_no_distillation_is_an_ancestor(
    groups, trainer, ensemble, control
):
    settings = combination(groups, trainer, ensemble, control)
    reached = reached_by_distillation(groups, trainer, ensemble, control)
    for t, k in product(ROUNDS, range(groups)):
        expected = settings if reached(("aggregated", t, k)) else owners(settings)[1]
        assert AGGREGATION.job(settings, t, k).config == simplest(expected), (t, k)
        # A stateful trainer's round state, and the updates, stand in the same folder.
        assert reached(("aggregated", t, k)) == reached(("state", t, k)), (t, k)
        assert reached(("aggregated", t, k)) == reached(("update", t, k)), (t, k)


@pytest.mark.parametrize("groups", [1, 2, 3, 4])
@pytest.mark.parametrize("trainer", TRAINERS, ids=str)
def test_is_distilled_exactly_where_the_global_model_comes_from_a_distillation(groups, trainer):
    settings = combination(groups, trainer, 1)
    for t, k in product(range(7), range(groups)):
        (source, *_), *_ = nodes_read(("global", t, k), groups, trainer, 1)
        assert is_distilled(settings, t, k) == (source == "distillation"), (t, k)


def test_reachability_of_this_test_sees_what_it_should():
    # FedSDD, K = 2: group 1 is never reached; group 0 is from round 2 on.
    reached = reached_by_distillation(2, ("designated", 0), 2)
    assert [reached(("aggregated", t, 0)) for t in ROUNDS] == [False, *[True] * 5]
    assert not any(reached(("aggregated", t, 1)) for t in ROUNDS)
    # With shared control variates group 1 is from round 3 on: what group 0 sent in round 2 counts.
    reached = reached_by_distillation(2, ("designated", 0), 2, "shared")
    assert [reached(("aggregated", t, 1)) for t in ROUNDS] == [False, False, *[True] * 4]


def test_students():
    assert students(line(global_models=3)) == ()
    assert students(distilled_line(global_models=3)) == (0, 1, 2)
    assert students(distilled_line(global_models=3, **{"global": "designated"})) == (0,)


def test_first_distillation_follows_the_warm_up():
    assert first_distillation(distilled_line()) == 1
    assert first_distillation(distilled_line(**{"global": {"basic": {"warm_up": 3}}})) == 4


def test_undistilled_line_has_nothing_of_the_distillation_and_keeps_all_else():
    changed = distilled_line(global_models=2, public="cifar10", local="scaffold")
    assert owners(changed)[1] == line(global_models=2, local="scaffold")
    assert owners(undistilled(changed))[1] == owners(changed)[1]


def test_normalised_keeps_a_distilled_line_and_clears_what_an_undistilled_one_does_not_read():
    assert simplest(distilled_line(public="svhn")) == distilled_line(public="svhn")
    unread = {"ensemble": "clients", "server": SERVER, "public": "svhn"}
    assert simplest(line(**unread)) == line()


# --- slots ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("remainder", ["spread", "main"])
def test_every_slot_is_in_one_group(remainder):
    for participants in range(1, 21):
        for groups in range(1, participants + 1):
            settings = line(
                clients=20, participants=participants, global_models=groups, remainder=remainder
            )
            slots = [list(group_slots(settings, group)) for group in range(groups)]
            assert list(chain(*slots)) == list(range(participants))
            sizes = [len(group) for group in slots]
            assert sizes == sorted(sizes, reverse=True)
            if remainder == "spread":
                assert max(sizes) - min(sizes) <= 1
            else:
                assert set(sizes[1:]) <= {participants // groups}


@pytest.mark.parametrize(
    ("remainder", "groups"),
    [("spread", [[0, 1, 2], [3, 4, 5], [6, 7]]), ("main", [[0, 1, 2, 3], [4, 5], [6, 7]])],
)
def test_eight_participants_in_three_groups(remainder, groups):
    settings = line(participants=8, global_models=3, remainder=remainder)
    assert [list(group_slots(settings, group)) for group in range(3)] == groups


# --- digests: what they depend on -----------------------------------------------------------------


def reversed_keys(content):
    if isinstance(content, dict):
        return {key: reversed_keys(content[key]) for key in reversed(content)}
    return content


def written_out(settings):
    return settings.model_dump(mode="json", by_alias=True)


def test_defaults_written_out_or_left_out_are_the_same_line():
    for settings in (line(), distilled_line(global_models=2)):
        full = Line.model_validate(written_out(settings))
        assert full == settings
        assert full.model_fields_set != settings.model_fields_set
        assert training_id(full) == training_id(settings)
        assert partition_id(full) == partition_id(settings)
        assert data_id(full.data) == data_id(settings.data)
        assert initial_id(full.data, full.model, 0) == initial_id(settings.data, settings.model, 0)
        assert canonical(full) == canonical(settings)


@pytest.mark.parametrize(
    ("whole", "real"),
    [
        ({"partition": {"dirichlet": {"alpha": 1}}}, {"partition": {"dirichlet": {"alpha": 1.0}}}),
        ({"validation": 0}, {"validation": 0.0}),
        ({"client": {**CLIENT, "learning_rate": 1}}, {"client": {**CLIENT, "learning_rate": 1.0}}),
        ({"client": {**CLIENT, "clip_norm": 2}}, {"client": {**CLIENT, "clip_norm": 2.0}}),
        ({"local": {"fedprox": {"mu": 1}}}, {"local": {"fedprox": {"mu": 1.0}}}),
        (
            {"client": {**CLIENT, "loss": {"focal": {"gamma": 1, "class_weights": [2] * 10}}}},
            {"client": {**CLIENT, "loss": {"focal": {"gamma": 1.0, "class_weights": [2.0] * 10}}}},
        ),
    ],
    ids=str,
)
def test_one_equals_one_point_zero(whole, real):
    # Not through `==` and the cache of ids, which take 1 for 1.0 anyway.
    assert as_json(canonical(line(**whole))) == as_json(canonical(line(**real)))
    assert training_id(line(**whole)) == training_id(line(**real))
    assert partition_id(line(**whole)) == partition_id(line(**real))


def test_order_of_keys_is_irrelevant():
    raw = {**BASE, **DISTILLED, "partition": {"name": "dirichlet", "alpha": 1, "min_samples": 3}}
    turned = reversed_keys(raw)
    assert list(turned) != list(raw)
    one, other = Line.model_validate(raw), Line.model_validate(turned)
    assert digest(canonical(one)) == digest(canonical(other))
    assert digest({"a": 1, "b": {"c": 2, "d": 3}}) == digest({"b": {"d": 3, "c": 2}, "a": 1})


def test_short_and_full_form_of_a_choice_are_the_same_line():
    full = line(
        data={"name": "digits"},
        partition={"name": "dirichlet", "alpha": 0.1},
        model={"cnn_small": None},
        local={"name": "fedavg"},
    )
    assert training_id(full) == training_id(line())


def test_settings_that_nothing_reads_are_not_in_the_id():
    assert training_id(line(ensemble="clients", server=SERVER, public="svhn")) == training_id(
        line()
    )


def test_canonical_settings_can_be_read_back():
    for settings in (line(), distilled_line(global_models=2, public={"svhn": {"held_out": 1}})):
        assert Line.model_validate(canonical(settings)) == settings
    local = alone(line(), 5, pooled=True)
    assert LocalLine.model_validate(canonical(local)) == local


def test_digest_is_ten_hexadecimal_digits_and_differs_with_the_schema_version(monkeypatch):
    before = digest({"a": 1})
    assert re.fullmatch("[0-9a-f]{10}", before)
    monkeypatch.setattr("fedstage.plan.digests.SCHEMA_VERSION", SCHEMA_VERSION + 1)
    assert digest({"a": 1}) != before


IDS = {
    "data": lambda line: data_id(line.data),
    "partition": partition_id,
    "participation": participation_id,
    "initial": lambda line: initial_id(line.data, line.model, line.seed),
    "line": training_id,
    "undistilled": lambda line: training_id(owners(line)[1]),
    "alone": lambda line: local_id(alone(line, 3, pooled=False)),
    "pooled": lambda line: local_id(alone(line, 3, pooled=True)),
}
LOCAL = {"alone", "pooled"}
TRAINED = {"line", "undistilled"}
HEADED = {"cnn_small": {"head": {}}}
SERVED = {"model": HEADED, "global_models": 3, "server_model": True}
#: Each field of a line, a changed value, and the ids that must change with it; no other may. Some
#: need settings beside them.
REACH = {
    "data": ({"digits": {"test": 300}}, {"data", "partition", "initial", *TRAINED, *LOCAL}),
    "clients": (20, {"partition", "participation", *TRAINED, *LOCAL}),
    "partition": ("iid", {"partition", *TRAINED, *LOCAL}),
    "validation": (0.1, {"partition", *TRAINED, *LOCAL}),
    "core": ({"samples": "share"}, {"partition", *TRAINED, *LOCAL}),
    "participants": (7, {"participation", *TRAINED}),
    "participation": ("by_samples", {"participation", *TRAINED}),
    "staleness": ({"cyclic": {"delays": [0, 1]}}, {"participation", *TRAINED}),
    "withdraw_stale": (True, {"participation", *TRAINED}, {"staleness": "never"}),
    "model": ("logistic_regression", {"initial", *TRAINED, *LOCAL}),
    "start": ("results/distilled_models/a/model.safetensors", {*TRAINED, *LOCAL}),
    "start_of": (
        "server",
        TRAINED,
        {
            "server_model": True,
            "global_models": 2,
            "start": "results/distilled_models/a/model.safetensors",
        },
    ),
    "global_models": (2, TRAINED),
    "architectures": (["cnn_small"], set()),  # of one group it is the model; see below
    "client_architectures": ([{"model": "cnn_small", "clients": 5}], set()),  # the only one
    "client_groups": ("drawn", {"participation", *TRAINED}, {"global_models": 2}),
    "server_model": (True, TRAINED, {"global_models": 2}),
    "head_transfer": (True, {"line"}, SERVED),
    "remainder": ("main", set()),  # of one group; see below
    "local": ("fedprox", TRAINED),
    "client": ({**CLIENT, "momentum": 0.5}, {*TRAINED, *LOCAL}),
    "compression": ({"stc": {"downstream": False}}, TRAINED),
    "aggregation": ({"weights": "uniform"}, TRAINED),
    "ensemble": ("aggregated", {"line"}),
    "global": ({"basic": {"warm_up": 1}}, {"line"}),
    "distillation": ("l1", {"line"}),
    "server": ({**SERVER, "temperature": 2.0}, {"line"}),
    "public": ("cifar10", {"line"}),
    "generator": (
        {"fedftg": {"diversity": 2.0}},
        {"line"},
        {"generator": "fedftg", "public": "generated"},
    ),
    "on_divergence": ("drop", TRAINED),
    "numerics": ({"threads": 2}, {*TRAINED, *LOCAL}),
    "seed": (1, {"partition", "participation", "initial", *TRAINED, *LOCAL}),
}


@pytest.mark.parametrize("field", REACH)
def test_a_changed_setting_changes_the_ids_that_it_reaches_and_no_other(field):
    value, expected, *beside = REACH[field]
    base = beside[0] if beside else {}
    before, after = distilled_line(**base), distilled_line(**base | {field: value})
    assert {name for name, of in IDS.items() if of(before) != of(after)} == expected


MIXED = {"global_models": 4, "architectures": ["cnn_small", "logistic_regression"] * 2}
PER_ARCHITECTURE = {"global": {"designated": {"main": "per_architecture"}}}


def test_architectures_of_groups_change_the_lines_that_have_them():
    before, after = distilled_line(global_models=4), distilled_line(**MIXED)
    assert {name for name, of in IDS.items() if of(before) != of(after)} == TRAINED
    assert "-cnn_small_and_others-" in training_id(after)
    assert [model_of(after, group).name for group in range(3)] == [
        "cnn_small", "logistic_regression", "cnn_small",
    ]  # fmt: skip
    assert Line.model_validate(canonical(after)) == after


def test_architectures_that_are_all_the_model_are_no_others():
    same = distilled_line(global_models=2, architectures=["cnn_small"] * 2, **PER_ARCHITECTURE)
    plain = distilled_line(global_models=2, **{"global": "designated"})
    assert simplest(same) == plain
    assert training_id(same) == training_id(plain)
    assert students(same) == (0,)


@pytest.mark.parametrize(
    ("names", "expected"),
    [("aaaa", (0,)), ("abab", (0, 1)), ("aabb", (0, 2)), ("abca", (0, 1, 2)), ("a", (0,))],
)
def test_one_main_model_of_each_architecture_is_a_student(names, expected):
    widths = {"a": 4, "b": 8, "c": 12}
    models = [{"cnn_small": {"width": widths[name]}} for name in names]
    settings = {"global_models": len(names), "architectures": models, "model": models[0]}
    assert students(distilled_line(**settings | PER_ARCHITECTURE)) == expected
    assert students(distilled_line(**settings, **{"global": "designated"})) == (0,)
    assert students(distilled_line(**settings)) == tuple(range(len(names)))
    assert students(line(**settings)) == ()


# --- a model of the server's, heads and logits that travel ----------------------------------------


def small(width):
    return {"cnn_small": {"width": width, "hidden": 8, "head": {"hidden": 6, "width": 4}}}


LARGE = {
    "model": small(4), "global_models": 3, "architectures": [small(4), small(3), small(2)],
    "client_groups": "drawn", "server_model": True, "server": SERVER,
}  # fmt: skip
FEDET = LARGE | {
    "aggregation": {"weights": "uniform"},
    "head_transfer": True,
    "ensemble": {"clients": {"weights": "confidence", "average": "probabilities"}},
    "global": "designated",
    "distillation": "fedet",
}
DSFL = LARGE | {
    "local": "digest",
    "ensemble": {"clients": {"average": "probabilities"}},
    "global": "designated",
    "distillation": "entropy_reduction",
}
FEDMD = LARGE | {"local": "digest", "ensemble": "clients", "distillation": "l1"}
UNIFORM_FEDDF = LARGE | {
    "aggregation": {"weights": "uniform"}, "ensemble": "clients", "global": "basic",
}  # fmt: skip


def shared_rounds(one, other, groups=(1, 2)):
    """Return the rounds in which both lines train the same participants' files."""
    pairs = line(**one), line(**other)
    return [
        t
        for t in ROUNDS
        if all(
            AGGREGATION.job(pairs[0], t, k).config == AGGREGATION.job(pairs[1], t, k).config
            for k in groups
        )
    ]


@pytest.mark.parametrize(
    "changes",
    [
        {"distillation": {"fedet": {"diversity": 0.5}}},
        {"distillation": {"fedet": {"normalised_over": "dissenters"}}},
        {"server": SERVER | {"steps": 7}},
        {"ensemble": "clients"},
        {"public": "cifar10"},
    ],
    ids=str,
)
def test_what_fed_ets_server_does_reaches_clients_from_round_2_on(changes):
    assert shared_rounds(FEDET, FEDET | changes) == [1]


def test_fed_et_shares_its_first_round_with_all_that_train_the_same_models():
    plain = LARGE | {"aggregation": {"weights": "uniform"}}
    apart = FEDET | {"head_transfer": False}
    for other in (apart, plain, UNIFORM_FEDDF):
        assert shared_rounds(FEDET, other) == [1]
    # Without heads the server's model teaches nobody.
    assert shared_rounds(apart, plain) == list(ROUNDS)
    assert shared_rounds(apart, apart | {"server": SERVER | {"steps": 7}}) == list(ROUNDS)
    # FedDF weights clients by samples, so that its averages are other files from the start.
    assert shared_rounds(FEDET, UNIFORM_FEDDF | {"aggregation": {}}) == []


@pytest.mark.parametrize("settings", [FEDET, UNIFORM_FEDDF], ids=["fedet", "feddf"])
def test_heads_and_students_of_all_groups_reach_every_client_from_round_2_on(settings):
    settings = line(**settings)
    for t, k in product(ROUNDS, (1, 2)):
        expected = owners(settings)[1] if t == 1 else simplest(settings)
        assert AGGREGATION.job(settings, t, k).config == expected
    assert owners(settings)[1].head_transfer is False


def test_clients_that_exchange_logits_share_what_precedes_training_only():
    """A line's settings reach its clients when they digest. Round 1, too, belongs to each line."""
    dsfl, fedmd = line(**DSFL), line(**FEDMD)
    same = {name for name, of in IDS.items() if of(dsfl) == of(fedmd)}
    assert same == {"data", "partition", "participation", "initial", *LOCAL}
    assert shared_rounds(DSFL, FEDMD) == []
    fedavg = line(**LARGE)
    assert participation_id(fedavg) == participation_id(dsfl)


def test_ds_fls_clients_do_not_depend_on_its_servers_model():
    alone = {key: value for key, value in DSFL.items() if key != "global"}
    assert shared_rounds(DSFL, alone) == list(ROUNDS)
    assert shared_rounds(DSFL, DSFL | {"server": SERVER | {"steps": 7}}) == []
    assert students(line(**DSFL)) == (0,)
    assert students(line(**FEDMD)) == ()


# --- clients bound to architectures ---------------------------------------------------------------

TWO = {"global_models": 2, "architectures": ["cnn_small", "logistic_regression"]}


def bound(*parts, **changes):
    """Return a line of two architectures, with clients bound to them: c, l, or - for any."""
    models = {"c": "cnn_small", "l": "logistic_regression", "-": None}
    runs = [{"model": models[part[-1]], "clients": int(part[:-1])} for part in parts]
    return line(**TWO | {"client_architectures": runs} | changes)


def test_a_binding_says_who_may_be_which_slot():
    rule = binding(bound("3c", "2-", "3l"))
    assert rule.slots == (0,) * 4 + (1,) * 4
    assert rule.clients == (0,) * 3 + (None,) * 2 + (1,) * 3 + (None,) * 2
    assert binding(line(**TWO)) is None


def test_a_binding_reaches_participants_and_what_they_train_but_nothing_of_local_lines():
    before, after = line(**TWO), bound("3c", "3l")
    changed = {name for name, of in IDS.items() if of(before) != of(after)}
    assert changed == {"participation", *TRAINED}
    assert Line.model_validate(canonical(after)) == after
    assert re.fullmatch(r"8_of_10-bound-seed0-[0-9a-f]{10}", participation_id(after))


@pytest.mark.parametrize(
    "parts",
    [["5c", "2l"], ["2c", "3c", "2l"], ["5c", "2l", "3-"], ["5c", "2l", "1-", "2-"]],
    ids=" ".join,
)
def test_a_binding_has_one_form(parts):
    assert simplest(bound(*parts)) == bound("5c", "2l")
    assert training_id(bound(*parts)) == training_id(bound("5c", "2l"))
    assert training_id(bound("5c", "1-", "2l")) != training_id(bound("5c", "2l"))


@pytest.mark.parametrize("changes", [{}, TWO | {"architectures": ["cnn_small"] * 2}], ids=str)
def test_clients_bound_to_the_only_architecture_are_bound_to_nothing(changes):
    runs = [{"model": "cnn_small", "clients": 4}, {"clients": 2}]
    one = line(**changes, client_architectures=runs)
    assert training_id(one) == training_id(line(**changes))
    assert participation_id(one) == "8_of_10-seed0"
    assert training_id(bound("3-")) == training_id(line(**TWO))


def test_plans_are_shared_where_slots_and_clients_go_together():
    plan = participation_id(bound("3c", "3l"))
    method = {"local": "scaffold", "client": {**CLIENT, "epochs": 7}, **DISTILLED}
    assert participation_id(bound("3c", "3l", **method)) == plan
    assert participation_id(owners(bound("3c", "3l", **method))[1]) == plan
    more = {"global_models": 4, "architectures": ["cnn_small"] * 2 + ["logistic_regression"] * 2}
    assert participation_id(bound("3c", "3l", **more)) == plan
    others = ["resnet8", "cnn_small"]
    runs = [{"model": model, "clients": 3} for model in others]
    same = {"model": "resnet8", "architectures": others, "client_architectures": runs}
    assert participation_id(line(**TWO | same)) == plan
    turned = {"architectures": ["cnn_small", "logistic_regression"] * 2, "global_models": 4}
    for different in (
        bound("3c", "3l", **turned), bound("3c", "2l"), bound("3l", "3c"),
        bound("3c", "3l", seed=1), bound("3c", "3l", participants=7),
    ):  # fmt: skip
        assert participation_id(different) != plan


def test_every_field_of_a_line_is_in_the_table_above():
    fields = {field.alias or name for name, field in Line.model_fields.items()}
    assert set(REACH) == fields


BATCH_NORM = {"model": {"cnn_small": {"norm": "batch"}}}
SHARED = {"local": {"scaffold": {"control": "shared"}}}


@pytest.mark.parametrize(
    ("settings", "changed", "reaches"),
    [
        # Of eight participants, as far as nothing else is said.
        ({"global_models": 3}, {"remainder": "main"}, True),
        ({"global_models": 4}, {"remainder": "main"}, False),
        ({"global_models": 4, "participants": 9}, {"remainder": "main"}, False),
        ({"global_models": 4, "participants": 10}, {"remainder": "main"}, True),
        ({"local": "scaffold"}, SHARED, False),
        ({"local": "scaffold", "global_models": 2}, SHARED, True),
        (BATCH_NORM, {"aggregation": {"batch_norm": "local"}}, True),
        (BATCH_NORM, {"aggregation": {"batch_norm": "re_estimate"}}, True),
        ({}, {"aggregation": {"batch_norm": "local"}}, False),
        ({}, {"aggregation": {"batch_norm": "re_estimate"}}, False),
        ({"model": "logistic_regression"}, {"aggregation": {"batch_norm": "local"}}, False),
        ({"model": "resnet8"}, {"aggregation": {"batch_norm": "local"}}, True),
        (
            {"model": {"resnet8": {"norm": "group"}}},
            {"aggregation": {"batch_norm": "local"}},
            False,
        ),
        ({**BATCH_NORM, "aggregation": {"batch_norm": "re_estimate"}}, {"public": "svhn"}, True),
        ({**BATCH_NORM, "aggregation": {"batch_norm": "local"}}, {"public": "svhn"}, False),
        ({"aggregation": {"batch_norm": "re_estimate"}}, {"public": "svhn"}, False),
    ],
    ids=str,
)
def test_settings_count_where_they_can_reach_anything(settings, changed, reaches):
    one, other = line(**settings), line(**settings | changed)
    assert (training_id(one) != training_id(other)) == reaches
    distilled = [settings | DISTILLED, settings | changed | DISTILLED]
    ids = {training_id(line(**changes)) for changes in distilled}
    assert (len(ids) == 2) == (reaches or "public" in changed)
    bases = {owners(line(**changes))[1] for changes in distilled}
    assert (len(bases) == 2) == reaches


MODULES = [
    f"fedstage.settings.{name}"
    for name in (
        "aggregation", "aggregators", "data", "data_sets", "ensembles", "generators", "groups",
        "heads", "lines", "local_training", "model_rules", "models", "numerics", "odds", "one_shot",
        "optimisation", "partitions", "prototypes", "public", "quantisation", "selections",
        "server", "staleness", "tables", "transfers", "unknown",
    )
]  # fmt: skip


def settings_classes():
    """Return what lines are made of, without classes that say of what kind a choice is only."""
    for name in MODULES:
        import_module(name)
    found = {kind.__name__: kind for kind in subclasses(Settings) if kind.__module__ in MODULES}
    return {name: kind for name, kind in found.items() if not is_kind_only(kind)}


def is_kind_only(settings):
    return issubclass(settings, Choice) and not settings.names() and len(settings.model_fields) == 1


REQUIRED = {
    "BoundClients": {"clients": 2},
    "Cyclic": {"delays": [0, 1]},
    "Random": {"probabilities": [0.5, 0.5]},
    "Pretrained": {"file": "a", "sha256": "1" * 8},
    "ParquetData": {"folder": "a"},
    "TableData": {"folder": "a"},
    "Dirichlet": {"alpha": 0.5},
    "DirichletByClient": {"alpha": 0.5},
    "DirichletEqual": {"alpha": 0.5},
    "Step": {"milestones": [0.5]},
    "Cyclical": {"cycle": 2},
    "Optimiser": {"learning_rate": 0.1, "batch_size": 8},
    "Client": {"learning_rate": 0.1, "batch_size": 8, "epochs": 2},
    "Server": {"learning_rate": 0.1, "batch_size": 8, "steps": 2},
    "FederatedRounds": {"rounds": 2},
    "Transformer": {"layers": 2, "heads": 2, "width": 16, "hidden": 16},
    "MirrorDescent": {"rounds": 2},
    "ProxySet": {"steps": 2},
    "Selection": {"count": 2},
    "RandomMembers": {"count": 2},
    "BestMembers": {"count": 2},
    "LargestMembers": {"count": 2},
}
OPTIMISER = {
    "optimiser": "adam",
    "learning_rate": 0.2,
    "schedule": "cosine",
    "momentum": 0.9,
    "nesterov": True,
    "weight_decay": 0.001,
    "clip_norm": 1.0,
    "batch_size": 4,
    "augmentation": "flip",
}
IMAGES = {"held_out_augmentation": "flip", "split_seed": 1}
SIZES = {
    "train_size": 50, "train_fraction": 0.5, "test_size": 50, "held_out": 50,
    "server_validation": 5, "split_seed": 1, "division": [7, 1, 2],
}  # fmt: skip
COLUMNS = {
    "label": "outcome", "client_column": "centre", "features": ["age"], "drop": ["id"],
    "categorical": ["age"], "missing": "mean",
}  # fmt: skip
ADAPTIVE = {
    "learning_rate": 0.5,
    "beta1": 0.5,
    "beta2": 0.5,
    "epsilon": 0.5,
    "epsilon_in_root": True,
    "bias_correction": True,
    "v_start": "epsilon_squared",
}
TRANSFORMER = {
    "vocabulary": 900,
    "positions": 64,
    "layers": 3,
    "heads": 4,
    "width": 12,
    "hidden": 8,
    "weights": {"file": "b", "sha256": "0" * 8},
    "head": {},
    "more_outputs": 1,
}
MORE_OUTPUTS = {"more_outputs": 1}
#: For each class, each field with a value that is neither its default nor the one above.
ADVERSARIAL = {
    "latent": 3,
    "width": 4,
    "steps": 2,
    "batch_size": 4,
    "learning_rate": 0.5,
    "beta1": 0.9,
    "clip_norm": 1.0,
    "adversarial": 0.5,
    "temperature": 2.0,
    "augmentation": "flip",
}
FED_FTG = {
    "latent": 3,
    "width": 4,
    "steps": 2,
    "student_steps": 2,
    "learning_rate": 0.5,
    "classification": 0.5,
    "diversity": 0.5,
}
OTHER = {
    "ImageSet": IMAGES,
    "Digits": {"test": 300, "held_out": 300, "server_validation": 5} | IMAGES,
    "Sized": SIZES,
    "TorchvisionData": SIZES | IMAGES | {"extra": True},
    "ParquetData": SIZES
    | IMAGES
    | {"folder": "b", "label": "fine_label", "client_column": "writer", "image_size": 32},
    "TableColumns": COLUMNS,
    "TableData": SIZES | COLUMNS | {"folder": "b", "test_fraction": 0.2},
    "HeartDisease": {"folder": "b"},
    "Isic2019": SIZES | IMAGES | {"folder": "b", "crop": 64},
    "Camelyon16": {"folder": "b", "max_tiles": 10},
    "AgNews": SIZES | {"folder": "b", "length": 64, "vocabulary": "b", "vocabulary_size": 900},
    "Sent140": {
        "folder": "b",
        "min_samples": 9,
        "test": 0.3,
        "held_out": 0.3,
        "server_validation": 0.1,
        "split_seed": 1,
        "length": 64,
        "vocabulary": "b",
        "vocabulary_size": 900,
    },
    "HeldOut": {},
    "CoreSamples": {},
    "Generated": {},
    "OfClients": {"samples": 10},
    "Cvae": {
        "latent": 3,
        "width": 4,
        "beta": 0.5,
        "epochs": 2,
        "batch_size": 4,
        "learning_rate": 0.5,
        "samples": 10,
        "truncation": 1.0,
        "distilled": {},
    },
    "DistilledDecoder": {"samples": 10, "epochs": 2, "batch_size": 4, "learning_rate": 0.5},
    "Adversarial": ADVERSARIAL,
    "Dense": ADVERSARIAL | {"batch_norm": 0.0, "norms": "sum", "only_disagreeing": False},
    "CoBoosting": ADVERSARIAL
    | {"hardness": 2.0, "step": 0.0, "weight_step": 0.0, "weight_decay": 0.5},
    "FedFtg": FED_FTG,
    "FedFtgAsReleased": FED_FTG,
    "Core": {"samples": "all", "classes": "some"},
    "Iid": {},
    "Dirichlet": {"alpha": 0.6, "min_samples": 2, "max_draws": 10, "mask": False},
    "DirichletByClient": {"alpha": 0.6},
    "DirichletEqual": {"alpha": 0.6, "max_draws": 10},
    "Shards": {"classes_per_client": 3},
    "Natural": {},
    "Head": {"hidden": 9, "width": 9, "relu": False},
    "Architecture": MORE_OUTPUTS,
    "Headed": {"head": {}} | MORE_OUTPUTS,
    "Moon": {"mu": 1.0, "temperature": 1.0},
    "FedNtd": {"beta": 0.5, "temperature": 2.0},
    "FedLc": {"tau": 0.5},
    "FedGkd": {
        "gamma": 0.5,
        "models": 3,
        "teacher": "vote",
        "vote_temperature": 2.0,
        "distance": "mse",
        "temperature": 2.0,
    },
    "Digest": {"cache": {}, "teacher": "server"},
    "LabelCache": {"duration": 5, "expired": "renewed"},
    "Gkt": {"alpha": 0.5, "temperature": 1.0},
    "CnnSmall": {"width": 8, "hidden": 32, "norm": "group", "head": {}} | MORE_OUTPUTS,
    "LogisticRegression": {"outputs": 1} | MORE_OUTPUTS,
    "DeepMil": {"width": 8, "outputs": None} | MORE_OUTPUTS,
    "Pretrained": {"file": "b", "sha256": "0" * 8},
    "EfficientNet": {"weights": {"file": "b", "sha256": "0" * 8}, "head": {}} | MORE_OUTPUTS,
    "OfTexts": {"vocabulary": 900, "head": {}} | MORE_OUTPUTS,
    "Lstm": {"vocabulary": 900, "embedding": 9, "layers": 1, "hidden": 9, "head": {}}
    | MORE_OUTPUTS,
    "Transformer": TRANSFORMER,
    "DistilBert": TRANSFORMER,
    "Bert": TRANSFORMER,
    "ResNet": {"norm": "group", "shortcut": "B", "head": {}} | MORE_OUTPUTS,
    "Lower": {"width": 8} | MORE_OUTPUTS,
    "Upper": {"width": 8} | MORE_OUTPUTS,
    "ResNetLower": {"width": 8, "blocks": 0, "norm": "group"} | MORE_OUTPUTS,
    "ResNetUpper": {"width": 8, "blocks": 2, "norm": "group", "shortcut": "B"} | MORE_OUTPUTS,
    "WideResNet": {"norm": "group", "head": {}} | MORE_OUTPUTS,
    "ResNetWide": {"norm": "group", "width": 28, "head": {}} | MORE_OUTPUTS,
    "CnnFedEt": {"channels": [32, 96], "head": {}} | MORE_OUTPUTS,
    "Perceptron": {"hidden": [32], "head": {}} | MORE_OUTPUTS,
    "ResNet18": {"norm": "none", "head": {}} | MORE_OUTPUTS,
    "Vgg19": {"head": {}} | MORE_OUTPUTS,
    "Constant": {},
    "Step": {"milestones": [0.5, 0.7], "factor": 0.2},
    "Cosine": {"final": 0.1},
    "Cyclical": {"cycle": 3, "final": 0.1},
    "Optimiser": OPTIMISER,
    "Client": OPTIMISER
    | {"epochs": 3, "steps": 3, "round_decay": 0.99, "last_batch": "keep", "batches": "continued"}
    | {"loss": "focal"},
    "CrossEntropy": {},
    "Focal": {"gamma": 1.0, "class_weights": [1.0, 2.0]},
    "Server": OPTIMISER
    | {
        "steps": 3,
        "epochs": 3,
        "samples_a_round": 5,
        "temperature": 2.0,
        "tau_squared": False,
        "softened": "teacher",
        "sharpening": 2.0,
        "teacher_images": "augmented",
        "labels": 1.0,
        "buffer": {},
        "factor_transfer": {},
        "swa": {"every": 1},
        "moving_average": {},
        "early_stopping": {},
        "drop_worst": "as_published",
    },
    "WeightAverage": {"start": 1, "every": 1},
    "EarlyStopping": {"every": 1, "patience": 1},
    "Buffer": {"weight": 0.5, "refresh": "epoch", "after": 1},
    "MovingAverage": {"decay": 0.5, "every": "epoch"},
    "FactorTransfer": {"weight": 1.0, "rate": 0.25, "epochs": 1, "learning_rate": 0.5},
    "FedAvg": {},
    "FedProx": {"mu": 0.01},
    "Scaffold": {"option": "I", "control": "shared", "weights": "samples"},
    "FedNova": {},
    "Uncompressed": {},
    "Stc": {
        "sparsity": 0.9,
        "bits": 32,
        "residuals": False,
        "downstream": False,
        "count": "published",
    },
    "Aggregation": {
        "rule": "median",
        "weights": "uniform",
        "learning_rate": 0.5,
        "server_optimizer": "adam",
        "batch_norm": "local",
        "discount": "polynomial",
        "stale": "changes",
    },
    "WeightedAverage": {},
    "Median": {},
    "TrimmedMean": {"trimmed": 2},
    "Krum": {"faulty": 0, "selected": 2},
    "ConstantDiscount": {},
    "PolynomialDiscount": {"exponent": 1.0},
    "HingeDiscount": {"a": 1.0, "b": 1.0},
    "ServerAverage": {},
    "ServerMomentum": {"learning_rate": 0.5, "beta": 0.5, "form": "damped"},
    "Adaptive": ADAPTIVE,
    "ServerAdam": ADAPTIVE,
    "ServerYogi": ADAPTIVE,
    "Ensemble": {"average": "probabilities"},
    "Clients": {"weights": "samples", "average": "probabilities"},
    "PublicGenerator": {
        "latent": 5,
        "width": 5,
        "steps": 5,
        "batch_size": 5,
        "learning_rate": 0.5,
        "beta1": 0.9,
    },
    "Discriminator": {
        "width": 5,
        "epochs": 5,
        "batch_size": 5,
        "learning_rate": 0.5,
        "beta1": 0.9,
    },
    "Odds": {
        "generator": {"steps": 5},
        "discriminator": {"epochs": 5},
        "average": "probabilities",
    },
    "Aggregated": {"checkpoints": 2, "average": "probabilities"},
    "Bayesian": {
        "distribution": "dirichlet",
        "samples": 3,
        "variant": "as_released",
        "concentration": 0.5,
        "average": "probabilities",
    },
    "Distilling": {"warm_up": 1, "starts_from": "previous"},
    "Basic": {"warm_up": 1, "starts_from": "previous"},
    "Designated": {"warm_up": 1, "starts_from": "previous", "main": "per_architecture"},
    "BoundClients": {"model": "cnn_small", "clients": 3},
    "Synchronised": {},
    "Cyclic": {"delays": [0, 2]},
    "Never": {},
    "Random": {"probabilities": [0.25, 0.75]},
    "Averaging": {},
    "Weighted": {"unheld": "zero"},
    "Confidence": {},
    "LeastUnknown": {"voters": 2},
    "FusedFeatures": {"weights": "uniform"},
    "Linear": {"variant": "as_released"},
    "Simplex": {},
    "PerClass": {},
    "Mlp": {"hidden": 3, "biases": True},
    "Voting": {
        "estimate": "as_published",
        "smoothing": 0.5,
        "prior": [0.5, 0.5],
        "benefit": [[1.0, 0.0], [0.0, 2.0]],
    },
    "Moe": {
        "channels": [2, 3],
        "kernel": 3,
        "padding": 1,
        "hidden": [4, 5],
        "output": "sigmoid",
    },
    "AggregatorStopping": {"every": 1, "patience": 2, "on": "validation"},
    "FederatedRounds": {
        "rounds": 3,
        "participants": 2,
        "steps": 2,
        "batch_size": 4,
        "learning_rate": 0.5,
        "server_optimizer": "average",
        "weights": "samples",
        "early_stopping": {},
    },
    "MirrorDescent": {
        "rounds": 3,
        "participants": 2,
        "predictors": 2,
        "sampling": "weights",
        "least": 0.5,
        "learning_rate": 0.5,
        "weights": "uniform",
        "early_stopping": {},
    },
    "KlTransfer": {},
    "L1Transfer": {},
    "L2Transfer": {"scores": "probabilities"},
    "Selection": {"count": 3},
    "RandomMembers": {"count": 3},
    "BestMembers": {"count": 3, "by": "validation", "at_least": 0.5},
    "LargestMembers": {"count": 3, "samples": 5},
    "FedEtTransfer": {
        "diversity": 0.5,
        "weights": "uniform",
        "normalised_over": "dissenters",
    },
    "EntropyReduction": {"temperature": 0.5},
    "FedGemsTransfer": {"epsilon": 0.5},
    "LabelsTransfer": {},
    "CotrainedTransfer": {},
    "ProxySet": {
        "steps": 3,
        "batch_size": 4,
        "optimiser": "sgd",
        "learning_rate": 0.5,
        "early_stopping": {},
    },
    "Corruptions": {},
    "Noise": {},
    "Attack": {"steps": 2, "step": 0.5, "radius": 1.0},
    "ClosedForm": {"covariance": "diagonal", "shrinkage": 0.5},
    "Prototypes": {"near": 0.5, "apart": 0.5, "alike": 0.5, "temperature": 0.5},
    "Unknown": {"outliers": "noise", "attack": None, "second": 0.5, "mixed": 0.5},
    "NotQuantised": {},
    "Calibration": {"on": "train", "samples": 8},
    "Int8": {"calibration": {"samples": 8}, "weights": "per_tensor", "reduce_range": False},
    "Numerics": {
        "device": "cpu",
        "threads": 2,
        "precision": "bf16",
        "memory_format": "channels_last",
        "compile": True,
        "cuda_graphs": True,
        "logits": "fp16",
    },
}
#: Fields that have one value only: there so that another is refused.
ONE_VALUE = {("AggregatorStopping", "on"), ("BestMembers", "by"), ("Calibration", "on")}
CHANGES = [
    (kind, field) for kind in OTHER for field in OTHER[kind] if (kind, field) not in ONE_VALUE
]


@pytest.mark.parametrize(("kind", "field"), CHANGES, ids=map(".".join, CHANGES))
def test_every_setting_of_every_part_is_in_the_digest(kind, field):
    required = dict(REQUIRED.get(kind, {}))
    name = settings_classes()[kind].model_fields.get("name")
    if name is not None:
        required["name"] = next(iter(get_args(name.annotation)), "any")
    changed = required | {field: OTHER[kind][field]}
    if field == "steps" and kind == "Client":
        del changed["epochs"]
    if field == "epochs" and kind == "Server":
        del changed["steps"]
    if field == "teacher_images":
        required["augmentation"] = changed["augmentation"] = "flip"
    if field == "extra":
        required["name"] = changed["name"] = "svhn"
    if field == "batches":
        del required["epochs"], changed["epochs"]
        required["steps"] = changed["steps"] = 2
    if field == "vote_temperature":
        required["teacher"] = changed["teacher"] = "vote"
    if field == "concentration":
        required["distribution"] = changed["distribution"] = "dirichlet"
    if field == "nesterov":
        required["momentum"] = changed["momentum"] = 0.9
    if field == "cuda_graphs":
        required["device"] = changed["device"] = "cuda"
    build = settings_classes()[kind].model_validate
    assert digest(canonical(build(required))) != digest(canonical(build(changed)))


def test_every_field_of_every_part_is_in_the_table_above():
    whole_lines = {"Line", "Groups", "LocalLine", "OneShot", "OneShotLine"}
    evaluated = {"GlobalModel", "OneByOne", "EachClient", "SplitModel"}
    parts_of_lines = {"DataOption", "InitialModel", "PartitionSettings", "Delays"}
    expected = {
        kind: set(settings.model_fields) - {"name"}
        for kind, settings in settings_classes().items()
        if kind not in whole_lines | evaluated | parts_of_lines
    }
    assert {kind: set(fields) for kind, fields in OTHER.items()} == expected


@pytest.mark.parametrize(
    ("field", "one", "other"),
    [
        ("model", "resnet20", "resnet32"),
        ("data", "cifar10", "cifar100"),
        ("partition", "iid", "shards"),
        ("local", "fedavg", "scaffold"),
        ("local", "fedavg", "fednova"),
        ("distillation", "kl", "entropy_reduction"),
        ("global", "basic", "designated"),
    ],
)
def test_choices_without_settings_differ_by_name(field, one, other):
    public = {"public": "svhn"}
    ids = {training_id(distilled_line(**public | {field: name})) for name in (one, other)}
    assert len(ids) == 2


# --- digests: what they are -----------------------------------------------------------------------

#: The defaults that digests of this schema version stand for.
PINNED_VERSION = 1
NUMERICS = {
    "device": "auto",
    "threads": 1,
    "precision": "fp32",
    "memory_format": "contiguous",
    "compile": False,
    "cuda_graphs": False,
    "logits": "fp32",
}
SERVER_ADAM = {
    "name": "adam",
    "learning_rate": 0.01,
    "beta1": 0.9,
    "beta2": 0.99,
    "epsilon": 0.001,
    "epsilon_in_root": False,
    "bias_correction": False,
    "v_start": "zero",
}
PINNED_DEFAULTS = {
    "ImageSet.held_out_augmentation": "none",
    "ImageSet.split_seed": 0,
    "Digits.test": 360,
    "Digits.held_out": 360,
    "Digits.server_validation": 0,
    "Sized.division": None,
    "Sized.train_size": None,
    "Sized.train_fraction": None,
    "Sized.test_size": None,
    "Sized.held_out": 0,
    "Sized.server_validation": 0,
    "Sized.split_seed": 0,
    "TorchvisionData.held_out_augmentation": "none",
    "TorchvisionData.extra": False,
    "ParquetData.held_out_augmentation": "none",
    "Isic2019.held_out_augmentation": "none",
    "ParquetData.label": "label",
    "ParquetData.client_column": None,
    "ParquetData.image_size": None,
    "TableColumns.label": "label",
    "TableData.label": "label",
    "TableColumns.client_column": None,
    "TableData.client_column": None,
    "TableColumns.features": (),
    "TableData.features": (),
    "TableColumns.drop": (),
    "TableData.drop": (),
    "TableColumns.categorical": (),
    "TableData.categorical": (),
    "TableColumns.missing": "refuse",
    "TableData.missing": "refuse",
    "TableData.test_fraction": None,
    "HeartDisease.folder": "heart_disease",
    "Isic2019.folder": "fed_isic2019",
    "Isic2019.crop": 200,
    "Camelyon16.folder": "fed_camelyon16",
    "Camelyon16.max_tiles": 10_000,
    "AgNews.folder": "ag_news",
    "AgNews.length": 128,
    "AgNews.vocabulary": None,
    "AgNews.vocabulary_size": 30_522,
    "Sent140.folder": "sent140",
    "Sent140.min_samples": 100,
    "Sent140.test": 0.2,
    "Sent140.held_out": 0.2,
    "Sent140.server_validation": 0.0,
    "Sent140.split_seed": 0,
    "Sent140.length": 256,
    "Sent140.vocabulary": None,
    "Sent140.vocabulary_size": 30_522,
    "Dirichlet.min_samples": 10,
    "Dirichlet.max_draws": 1000,
    "Dirichlet.mask": True,
    "DirichletEqual.max_draws": 1000,
    "Shards.classes_per_client": 2,
    "PartitionSettings.aggregator_fraction": 0.0,
    "Head.hidden": 128,
    "Head.width": 128,
    "Head.relu": True,
    "Headed.head": None,
    "Moon.mu": 5.0,
    "Moon.temperature": 0.5,
    "FedNtd.beta": 1.0,
    "FedNtd.temperature": 1.0,
    "FedLc.tau": 1.0,
    "Architecture.more_outputs": 0,
    "Digest.cache": None,
    "Digest.teacher": "clients",
    "FedGemsTransfer.epsilon": 0.75,
    "LabelCache.duration": 50,
    "LabelCache.expired": "forgotten",
    "FedGkd.gamma": 0.2,
    "FedGkd.models": 5,
    "FedGkd.teacher": "mean",
    "FedGkd.vote_temperature": 1.0,
    "FedGkd.distance": "kl",
    "FedGkd.temperature": 1.0,
    "CnnSmall.width": 16,
    "CnnSmall.hidden": 64,
    "CnnSmall.norm": "none",
    "LogisticRegression.outputs": None,
    "DeepMil.width": 128,
    "DeepMil.outputs": 1,
    "EfficientNet.weights": None,
    "OfTexts.vocabulary": 30_522,
    "Transformer.positions": 512,
    "Transformer.weights": None,
    "Lstm.embedding": 52,
    "Lstm.layers": 2,
    "Lstm.hidden": 256,
    "Bert.layers": 2,
    "Bert.heads": 2,
    "Bert.width": 128,
    "Bert.hidden": 512,
    "DistilBert.layers": 6,
    "DistilBert.heads": 12,
    "DistilBert.width": 768,
    "DistilBert.hidden": 3072,
    "ResNet.norm": "batch",
    "ResNet.shortcut": "A",
    "Lower.width": 16,
    "Upper.width": 16,
    "ResNetLower.blocks": 3,
    "ResNetLower.norm": "batch",
    "ResNetUpper.blocks": 9,
    "ResNetUpper.norm": "batch",
    "ResNetUpper.shortcut": "A",
    "WideResNet.norm": "batch",
    "ResNetWide.norm": "batch",
    "ResNetWide.width": 128,
    "CnnFedEt.channels": (64, 64),
    "Perceptron.hidden": (64, 64),
    "ResNet18.norm": "batch",
    "Step.factor": 0.1,
    "Cosine.final": 0.0,
    "Cyclical.final": 0.0,
    "Optimiser.optimiser": "sgd",
    "Optimiser.schedule": {"name": "constant"},
    "Optimiser.momentum": 0.0,
    "Optimiser.nesterov": False,
    "Optimiser.weight_decay": 0.0,
    "Optimiser.clip_norm": None,
    "Optimiser.augmentation": "none",
    "Client.epochs": None,
    "Client.steps": None,
    "Client.round_decay": 1.0,
    "Client.last_batch": "merge_single",
    "Client.batches": "anew",
    "Client.loss": {"name": "cross_entropy"},
    "Focal.gamma": 2.0,
    "Focal.class_weights": None,
    "Server.steps": None,
    "Server.epochs": None,
    "Server.temperature": 4.0,
    "Server.softened": "both",
    "Server.teacher_images": "original",
    "Server.labels": 0.0,
    "Server.buffer": None,
    "Server.factor_transfer": None,
    "Server.moving_average": None,
    "Server.samples_a_round": None,
    "Server.tau_squared": True,
    "Server.sharpening": 1.0,
    "Server.swa": None,
    "Server.early_stopping": None,
    "Server.drop_worst": "none",
    "WeightAverage.start": 0,
    "WeightAverage.every": 25,
    "EarlyStopping.every": 100,
    "EarlyStopping.patience": 1000,
    "Buffer.weight": 1.0,
    "Buffer.refresh": "round",
    "Buffer.after": 0,
    "MovingAverage.decay": 0.9,
    "MovingAverage.every": "step",
    "FactorTransfer.weight": 500.0,
    "FactorTransfer.rate": 0.5,
    "FactorTransfer.epochs": 5,
    "FactorTransfer.learning_rate": 0.1,
    "FedProx.mu": 0.001,
    "Gkt.alpha": 1.0,
    "Gkt.temperature": 3.0,
    "Scaffold.option": "II",
    "Scaffold.control": "per_model",
    "Scaffold.weights": "uniform",
    "Aggregation.rule": {"name": "average"},
    "TrimmedMean.trimmed": 1,
    "Krum.faulty": 1,
    "Krum.selected": 1,
    "Aggregation.weights": "samples",
    "Aggregation.learning_rate": 1.0,
    "Aggregation.server_optimizer": {"name": "average"},
    "Aggregation.batch_norm": "average",
    "Aggregation.discount": {"name": "constant"},
    "Aggregation.stale": "models",
    "PolynomialDiscount.exponent": 0.5,
    "HingeDiscount.a": 10.0,
    "HingeDiscount.b": 4.0,
    "ServerMomentum.learning_rate": 1.0,
    "ServerMomentum.beta": 0.9,
    "ServerMomentum.form": "heavy_ball",
    "Adaptive.learning_rate": 0.01,
    "Adaptive.beta1": 0.9,
    "Adaptive.beta2": 0.99,
    "Adaptive.epsilon": 0.001,
    "Adaptive.epsilon_in_root": False,
    "Adaptive.bias_correction": False,
    "Adaptive.v_start": "zero",
    "Stc.sparsity": 0.5,
    "Stc.bits": 16,
    "Stc.residuals": True,
    "Stc.downstream": True,
    "Stc.count": "encoded",
    "Ensemble.average": "logits",
    "Clients.weights": "uniform",
    "PublicGenerator.latent": 100,
    "PublicGenerator.width": 64,
    "PublicGenerator.steps": 2000,
    "PublicGenerator.batch_size": 64,
    "PublicGenerator.learning_rate": 0.0002,
    "PublicGenerator.beta1": 0.5,
    "Discriminator.width": 32,
    "Discriminator.epochs": 30,
    "Discriminator.batch_size": 64,
    "Discriminator.learning_rate": 0.0002,
    "Discriminator.beta1": 0.5,
    "Odds.generator": {
        "latent": 100,
        "width": 64,
        "steps": 2000,
        "batch_size": 64,
        "learning_rate": 0.0002,
        "beta1": 0.5,
    },
    "Odds.discriminator": {
        "width": 32,
        "epochs": 30,
        "batch_size": 64,
        "learning_rate": 0.0002,
        "beta1": 0.5,
    },
    "Aggregated.checkpoints": 1,
    "Bayesian.distribution": "gaussian",
    "Bayesian.samples": 10,
    "Bayesian.variant": "as_published",
    "Bayesian.concentration": 1.0,
    "Distilling.warm_up": 0,
    "Distilling.starts_from": "aggregated",
    "Designated.main": "first",
    "Numerics.device": "auto",
    "Numerics.threads": 1,
    "Numerics.precision": "fp32",
    "Numerics.memory_format": "contiguous",
    "Numerics.compile": False,
    "Numerics.cuda_graphs": False,
    "Numerics.logits": "fp32",
    "Line.start": None,
    "Line.validation": 0.0,
    "Groups.global_models": 1,
    "Groups.architectures": (),
    "Groups.client_architectures": (),
    "Groups.participation": "uniform",
    "Groups.staleness": {"name": "none"},
    "Groups.withdraw_stale": False,
    "Delays.staleness": {"name": "none"},
    "Delays.withdraw_stale": False,
    "BoundClients.model": None,
    "Line.local": {"name": "fedavg"},
    "Groups.remainder": "spread",
    "Groups.client_groups": "slots",
    "Groups.server_model": False,
    "Groups.head_transfer": False,
    "Line.distillation": {"name": "kl"},
    "Line.compression": {"name": "none"},
    "Line.aggregation": {
        "rule": {"name": "average"},
        "weights": "samples",
        "learning_rate": 1.0,
        "server_optimizer": {"name": "average"},
        "batch_norm": "average",
        "discount": {"name": "constant"},
        "stale": "models",
    },
    "Line.ensemble": None,
    "Line.global_trainer": None,
    "Line.server": None,
    "Line.public": {"name": "held_out"},
    "Line.generator": None,
    "Line.on_divergence": "stop",
    "Line.numerics": NUMERICS,
    "Weighted.unheld": "mean",
    "Linear.variant": "as_published",
    "Mlp.hidden": 40,
    "Mlp.biases": False,
    "Voting.estimate": "smoothed",
    "Voting.smoothing": 1.0,
    "Voting.prior": "uniform",
    "Voting.benefit": None,
    "Moe.channels": (6, 16),
    "Moe.kernel": 5,
    "Moe.padding": 0,
    "Moe.hidden": (120, 84),
    "Moe.output": "softmax",
    "AggregatorStopping.every": 10,
    "AggregatorStopping.patience": 100,
    "AggregatorStopping.on": "validation",
    "FederatedRounds.participants": None,
    "FederatedRounds.steps": 1,
    "FederatedRounds.batch_size": 128,
    "FederatedRounds.learning_rate": 1.0,
    "FederatedRounds.server_optimizer": SERVER_ADAM | {"learning_rate": 0.001},
    "FederatedRounds.weights": "uniform",
    "FederatedRounds.early_stopping": None,
    "MirrorDescent.participants": None,
    "MirrorDescent.predictors": None,
    "MirrorDescent.sampling": "uniform",
    "MirrorDescent.least": 0.1,
    "MirrorDescent.learning_rate": 0.1,
    "MirrorDescent.weights": "samples",
    "MirrorDescent.early_stopping": None,
    "ProxySet.batch_size": 128,
    "ProxySet.optimiser": "adam",
    "ProxySet.learning_rate": 0.001,
    "ProxySet.early_stopping": None,
    "OneShot.aggregator_fraction": 0.0,
    "OneShot.local_fraction": None,
    "OneShot.initialisation": "common",
    "OneShot.members": None,
    "OneShot.unknown": None,
    "LocalLine.unknown": None,
    "OneShot.prototypes": None,
    "LocalLine.prototypes": None,
    "ClosedForm.covariance": "full",
    "ClosedForm.shrinkage": 0.01,
    "Prototypes.near": 1.0,
    "Prototypes.apart": 1.0,
    "Prototypes.alike": 1.0,
    "Prototypes.temperature": 0.07,
    "FusedFeatures.weights": "samples",
    "OneShot.aggregator": {"name": "averaging"},
    "OneShot.aggregator_training": None,
    "OneShot.quantisation": {"name": "none"},
    "OneShot.forget": (),
    "OneShot.generator": None,
    "Adversarial.latent": 256,
    "Adversarial.width": 64,
    "Adversarial.steps": 30,
    "Adversarial.batch_size": 128,
    "Adversarial.learning_rate": 0.001,
    "Adversarial.beta1": 0.5,
    "Adversarial.clip_norm": None,
    "Adversarial.adversarial": 1.0,
    "Adversarial.temperature": 1.0,
    "Adversarial.augmentation": "none",
    "Dense.batch_norm": 1.0,
    "Dense.norms": "mean",
    "Dense.only_disagreeing": True,
    "CoBoosting.hardness": 1.0,
    "CoBoosting.step": 8 / 255,
    "CoBoosting.weight_step": 0.01,
    "CoBoosting.weight_decay": 0.99,
    "OfClients.samples": 7500,
    "FedFtg.latent": 100,
    "FedFtg.width": 64,
    "FedFtg.steps": 1,
    "FedFtg.student_steps": 5,
    "FedFtg.learning_rate": 0.01,
    "FedFtg.classification": 1.0,
    "FedFtg.diversity": 1.0,
    "Cvae.latent": 25,
    "Cvae.width": 32,
    "Cvae.beta": 1.0,
    "Cvae.epochs": 100,
    "Cvae.batch_size": 32,
    "Cvae.learning_rate": 0.001,
    "Cvae.truncation": 3.0,
    "Cvae.distilled": None,
    "DistilledDecoder.samples": 10000,
    "DistilledDecoder.epochs": 30,
    "DistilledDecoder.batch_size": 32,
    "DistilledDecoder.learning_rate": 0.01,
    "OneShot.distillation": None,
    "OneShot.student": None,
    "LeastUnknown.voters": None,
    "Unknown.outliers": {"name": "corruptions"},
    "Unknown.attack": {"steps": 5, "step": 0.002, "radius": 0.5},
    "Unknown.second": 1.0,
    "Unknown.mixed": 0.01,
    "Attack.steps": 5,
    "Attack.step": 0.002,
    "Attack.radius": 0.5,
    "BestMembers.by": "validation",
    "BestMembers.at_least": 0.0,
    "LargestMembers.samples": 1,
    "L2Transfer.scores": "logits",
    "FedEtTransfer.diversity": 0.05,
    "FedEtTransfer.weights": "confidence",
    "FedEtTransfer.normalised_over": "all",
    "EntropyReduction.temperature": 0.1,
    "OneShotLine.validation": 0.0,
    "OneShotLine.architectures": (),
    "OneShotLine.start": None,
    "OneShotLine.server": None,
    "OneShotLine.public": {"name": "held_out"},
    "OneShotLine.numerics": NUMERICS,
    "LocalLine.validation": 0.0,
    "LocalLine.aggregator_fraction": 0.0,
    "LocalLine.architectures": (),
    "LocalLine.initialisation": "common",
    "LocalLine.start": None,
    "LocalLine.quantisation": {"name": "none"},
    "Calibration.on": "train",
    "Calibration.samples": 256,
    "Int8.calibration": {"on": "train", "samples": 256},
    "Int8.weights": "per_channel",
    "Int8.reduce_range": True,
    "LocalLine.pooled": False,
    "LocalLine.on_core": False,
    "LocalLine.core": None,
    "Line.core": None,
    "Line.start_of": "all",
    "OneShotLine.core": None,
    "PartitionSettings.core": None,
    "Core.samples": "share",
    "Core.classes": "all",
    "LocalLine.numerics": NUMERICS,
}


def all_defaults():
    """Return the default of each field, under the class that defines or redefines it."""
    found = {}
    for kind, settings in settings_classes().items():
        for name, field in settings.model_fields.items():
            default = field.default
            inherited = settings.__base__.__dict__.get("__pydantic_fields__", {}).get(name)
            if field.is_required() or (inherited is not None and inherited.default == default):
                continue
            found[f"{kind}.{name}"] = (
                default.model_dump(mode="json") if isinstance(default, BaseModel) else default
            )
    return found


def test_defaults_and_schema_version_are_pinned_together():
    assert (SCHEMA_VERSION, all_defaults()) == (PINNED_VERSION, PINNED_DEFAULTS), (
        "A default is left out of digests: with another default, files that are there already "
        "would be taken for what they are not. Where a default changed or went, raise "
        "SCHEMA_VERSION in plan/digests.py, then pin the new version and defaults here. Only a "
        "new field, whose default is what was done before it, may be pinned under the old version."
    )


PINNED_IDS = [
    "digits-90d05e60fa",
    "digits-dirichlet0.1-seed0-acaee309d9",
    "8_of_10-seed0",
    "digits-cnn_small-seed0-0d2049dc06",
    "digits-dirichlet0.1-cnn_small-fedavg-seed0-d347dc9a63",
    "digits-dirichlet0.1-cnn_small-fedavg-K2-designated-seed0-292807dac0",
    "digits-dirichlet0.1-cnn_small-alone-seed0-ca854cf358",
    "digits-dirichlet0.1-cnn_small-pooled-seed0-d176b20f0e",
]


def test_ids_do_not_change_between_versions_of_python_and_packages():
    full = distilled_line(global_models=2, **{"global": "designated"})
    assert SCHEMA_VERSION == PINNED_VERSION, "pin the ids of the new schema version below"
    assert [
        data_id(full.data),
        partition_id(full),
        participation_id(full),
        initial_id(full.data, full.model, full.seed),
        training_id(line()),
        training_id(full),
        local_id(alone(full, 8, pooled=False)),
        local_id(alone(full, 8, pooled=True)),
    ] == PINNED_IDS, "an id changed: results that are there would be made anew under other names"


# --- names ----------------------------------------------------------------------------------------


def test_names_are_readable():
    full = distilled_line(global_models=4, **{"global": "designated"}, seed=3)
    assert training_id(full).startswith("digits-dirichlet0.1-cnn_small-fedavg-K4-designated-seed3-")
    assert training_id(line(local="scaffold", partition="iid")).startswith(
        "digits-iid-cnn_small-scaffold-seed0-"
    )
    assert partition_id(full).startswith("digits-dirichlet0.1-seed3-")
    assert participation_id(full) == "8_of_10-seed3"
    assert data_id(ParquetData(name="parquet", folder="flowers")).startswith("flowers-")


@pytest.mark.parametrize("folder", ["a/b", "../a", "my data", "a{b}", "a;b", "a'b", "ä", ".", "*"])
def test_names_of_folders_need_no_quotes_in_a_shell_and_no_care_in_a_wildcard(folder):
    settings = line(data={"parquet": {"folder": folder}})
    for name in (data_id(settings.data), partition_id(settings), training_id(settings)):
        assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", name)


def test_data_of_different_folders_have_different_names_even_if_they_read_the_same():
    one, other = (ParquetData(name="parquet", folder=folder) for folder in ("a/b", "a_b"))
    assert data_id(one) != data_id(other)


@pytest.mark.parametrize("extra", [{}, DISTILLED, {"global_models": 3}], ids=str)
@pytest.mark.parametrize("trainer", ["fedavg", "fedprox", "scaffold"])
def test_pattern_of_stateful_lines_fits_their_ids_only(extra, trainer):
    fits = re.fullmatch(is_stateful_name(), training_id(line(**extra, local=trainer)))
    assert bool(fits) == (trainer == "scaffold")


@pytest.mark.parametrize("trainer", ["fedavg", "scaffold"])
@pytest.mark.parametrize("norm", ["batch", "group"])
@pytest.mark.parametrize("kind", ["average", "local", "re_estimate"])
def test_lines_with_statistics_of_their_clients_are_named_as_stateful(trainer, norm, kind):
    settings = line(
        local=trainer, model={"cnn_small": {"norm": norm}}, aggregation={"batch_norm": kind}
    )
    own = (norm, kind) == ("batch", "local")
    assert (keeps_statistics(settings), keeps_state(settings)) == (own, own or trainer != "fedavg")
    assert bool(re.fullmatch(is_stateful_name(), training_id(settings))) == keeps_state(settings)
    name = f"digits-dirichlet0.1-cnn_small-{trainer}{'-local_bn' if own else ''}-seed0-"
    assert training_id(settings).startswith(name)


MOMENTS = [{"aggregation": {"server_optimizer": name}} for name in ("momentum", "adam", "yogi")]
ONE_WAY = {"downstream": False}


@pytest.mark.parametrize(
    ("changes", "named", "of_clients", "of_server"),
    [
        *((one, one["aggregation"]["server_optimizer"], False, True) for one in MOMENTS),
        ({"local": "scaffold", **MOMENTS[1]}, "adam", True, True),
        ({"compression": "stc"}, "stc", True, True),
        ({"compression": {"stc": ONE_WAY}}, "stc", True, True),
        ({"compression": {"stc": {"residuals": False}}}, "stc", False, True),
        ({"compression": {"stc": {"residuals": False} | ONE_WAY}}, "stc_memoryless", False, False),
        ({"compression": "stc", **MOMENTS[0]}, "stc-momentum", True, True),
        ({"local": "fednova"}, "", False, False),
    ],
    ids=str,
)
def test_lines_whose_server_or_compression_remembers_are_named_as_stateful(
    changes, named, of_clients, of_server
):
    settings = line(**changes)
    assert (clients_keep_state(settings), keeps_state(settings)) == (of_clients, of_server)
    assert bool(re.fullmatch(is_stateful_name(), training_id(settings))) == of_server
    name = "-".join(filter(None, [settings.local.name, named, "seed0"]))
    assert training_id(settings).startswith(f"digits-dirichlet0.1-cnn_small-{name}-")


def test_pattern_of_stateful_lines_is_not_misled_by_the_name_of_a_data_folder():
    settings = line(data={"parquet": {"folder": "images-scaffold-new"}}, local="fedavg")
    assert not re.fullmatch(is_stateful_name(), training_id(settings))


# --- unfederated counterparts ---------------------------------------------------------------------


def test_alone_trains_for_as_many_epochs_as_all_rounds_together():
    client = {**CLIENT, "epochs": 3, "round_decay": 0.9, "momentum": 0.5, "schedule": "cosine"}
    local = alone(line(client=client), 7, pooled=False)
    assert (local.client.epochs, local.client.steps) == (21, None)
    assert local.client.round_decay == 1.0
    assert (local.client.momentum, local.client.schedule.name) == (0.5, "cosine")
    assert not local.pooled


def test_alone_multiplies_steps():
    client = {"steps": 11, "batch_size": 4, "learning_rate": 0.1}
    local = alone(line(client=client), 4, pooled=True)
    assert (local.client.epochs, local.client.steps) == (None, 44)
    assert local.pooled


def test_alone_has_no_rounds_that_batches_go_on_from():
    client = {"steps": 11, "batch_size": 4, "learning_rate": 0.1}
    settings = [
        line(client=client | {"batches": how}, participants=10) for how in ("anew", "continued")
    ]
    assert training_id(settings[0]) != training_id(settings[1])
    assert len({local_id(alone(one, 4, pooled=False)) for one in settings}) == 1


def test_alone_keeps_data_partition_model_numerics_and_seed():
    settings = line(validation=0.2, numerics={"threads": 2}, seed=5)
    local = alone(settings, 2, pooled=False)
    for name in ("data", "clients", "partition", "validation", "model", "numerics", "seed"):
        assert getattr(local, name) == getattr(settings, name), name
    assert partition_id(local) == partition_id(settings)


def test_training_without_a_federation_stores_no_logits():
    narrow = alone(line(numerics={"precision": "bf16", "logits": "fp16"}), 2, pooled=False)
    assert narrow == alone(line(numerics={"precision": "bf16"}), 2, pooled=False)
    assert narrow.numerics.precision == "bf16"


def test_local_ids_tell_lengths_and_kinds_apart_but_not_how_a_length_is_made_up():
    ids = {local_id(alone(line(), rounds, pooled=p)) for rounds in (1, 2) for p in (True, False)}
    assert len(ids) == 4
    twice = line(client={**CLIENT, "epochs": 2})
    assert local_id(alone(twice, 3, pooled=False)) == local_id(alone(line(), 6, pooled=False))


def test_seeds_give_data_of_their_own_ids_but_share_the_data_set():
    one, other = line(seed=0), line(seed=1)
    assert data_id(one.data) == data_id(other.data)
    assert data_id(Digits(name="digits", split_seed=1)) != data_id(one.data)


# --- groups of clients, a server's model, heads, logits -------------------------------------------

GROUPS = {"global_models": 4, "client_groups": "drawn"}
SERVER_MODEL = {"global_models": 4, "server_model": True}
HEADED_GROUPS = SERVER_MODEL | {"model": HEADED, "head_transfer": True}
EXCHANGE = {"local": "digest", "ensemble": "clients", "server": SERVER, "client_groups": "drawn"}


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({}, "8_of_10-seed0"),
        (GROUPS, "8_of_10-4_groups-seed0"),
        (GROUPS | {"server_model": True}, "8_of_10-3_groups-seed0"),
        # Groups from which nobody is drawn, because there is one.
        ({"client_groups": "drawn"}, "8_of_10-seed0"),
        (GROUPS | {"global_models": 2, "server_model": True}, "8_of_10-seed0"),
    ],
    ids=str,
)
def test_a_plan_of_participants_says_how_many_groups_were_drawn(changes, name):
    assert participation_id(line(**changes)) == name


def test_a_plan_by_samples_of_groups_is_of_the_partition_as_well():
    one = participation_id(line(**GROUPS, participation="by_samples"))
    assert re.fullmatch(r"8_of_10-4_groups-by_samples-seed0-[0-9a-f]{10}", one)
    assert one != participation_id(line(**GROUPS, participation="by_samples", partition="iid"))


def test_plans_of_groups_are_shared_whatever_their_models_and_trainers_are():
    other = line(**HEADED_GROUPS, client_groups="drawn", local="fedprox")
    assert participation_id(other) == participation_id(line(**GROUPS | {"global_models": 3}))


def served_bound(*models):
    """Return a line whose server has another model than its clients, some of whom are bound."""
    return line(
        global_models=1 + len(models), server_model=True, architectures=["cnn_small", *models],
        client_architectures=[{"model": "logistic_regression", "clients": 3}],
    )  # fmt: skip


def test_a_binding_is_of_the_groups_that_clients_train():
    rule = binding(served_bound({"cnn_small": {"width": 4}}, "logistic_regression"))
    assert rule.slots == (0, 0, 0, 0, 1, 1, 1, 1)
    assert rule.clients == (1, 1, 1, *[None] * 7)


def test_clients_bound_to_the_only_architecture_of_clients_are_bound_to_nothing():
    assert binding(served_bound("logistic_regression", "logistic_regression")) is None


def test_control_variates_of_the_only_group_of_clients_are_shared_with_nobody():
    shared = {"scaffold": {"control": "shared"}}
    one, two = (line(global_models=k, server_model=True, local=shared) for k in (2, 3))
    assert simplest(one).local.control == "per_model"
    assert simplest(two).local.control == "shared"


def test_heads_reach_all_groups_from_the_second_round_on():
    one = line(**HEADED_GROUPS)
    for group in (1, 2, 3):
        assert AGGREGATION.job(one, 1, group).config == owners(one)[1]
        assert AGGREGATION.job(one, 2, group).config == simplest(one)
        assert takes_head(one, group)
        assert is_taught(one, 1, group)
        assert not is_distilled(one, 1, group)
    assert not takes_head(one, 0)
    assert (first_taught(one), first_distillation(one)) == (1, 0)
    assert taught_together(one) == (0, 1, 2, 3)
    assert not owners(one)[1].head_transfer


def test_a_servers_model_that_is_distilled_alone_reaches_no_group():
    one = distilled_line(**SERVER_MODEL, **{"global": {"designated": {"warm_up": 2}}})
    assert all(
        AGGREGATION.job(one, t, k).config == owners(one)[1] for t in ROUNDS for k in (1, 2, 3)
    )
    assert (first_taught(one), taught_together(one)) == (3, (0,))
    assert students(one) == (0,)


def test_clients_that_exchange_logits_need_the_ensemble_without_a_distillation():
    one = line(**EXCHANGE, global_models=2)
    assert teaches_public(one)
    assert exchanges_logits(one)
    assert trained_together(one)
    kept = simplest(one)
    assert (kept.ensemble.name, kept.server.steps) == ("clients", 20)
    others = (line(), distilled_line(), line(local={"scaffold": {"control": "shared"}}))
    assert [exchanges_logits(other) for other in others] == [False] * 3
    assert [teaches_public(other) for other in others] == [False, True, False]
    # Of a single global model the control variates are shared with nobody.
    assert [trained_together(other) for other in others] == [False, False, False]


def test_what_clients_learn_from_one_another_is_in_the_id_of_their_line():
    base = line(**EXCHANGE, global_models=2)
    changed = [{"distillation": "l1"}, {"server": SERVER | {"samples_a_round": 5}}]
    ids = {training_id(line(**EXCHANGE | change, global_models=2)) for change in changed}
    assert len(ids | {training_id(base)}) == 3
    # Without an exchange or a student nothing reads them.
    idle = [line(**{"server": SERVER, **change}) for change in changed]
    assert {training_id(one) for one in idle} == {training_id(line())}


def test_names_of_lines_say_that_heads_are_transferred():
    assert "-K4-heads-" in training_id(line(**HEADED_GROUPS))
    assert "-heads" not in training_id(line(**SERVER_MODEL))


# --- features that travel -------------------------------------------------------------------------

UPPER, LOWER = {"resnet_upper": {"blocks": 1}}, {"resnet_lower": {"blocks": 1}}
GKT = {
    "local": "gkt", "model": UPPER, "architectures": [UPPER, LOWER, LOWER], "global_models": 3,
    "client_groups": "drawn", "server_model": True, "server": SERVER,
}  # fmt: skip


def test_a_servers_model_that_learns_from_features_is_with_all_groups_in_the_line_of_its_own():
    one = line(**GKT)
    assert owners(one)[1] == simplest(one)
    assert {AGGREGATION.job(one, t, k).config for t in ROUNDS for k in range(3)} == {simplest(one)}
    assert [takes_features(one, k) for k in range(3)] == [True, False, False]
    assert [is_taught(one, 1, k) for k in range(3)] == [True, False, False]
    assert (first_taught(one), taught_together(one), students(one)) == (1, (0, 1, 2), ())
    assert not teaches_public(one)
    assert not weights_travel(one)
    assert weights_travel(line())
    assert not weights_travel(line(**EXCHANGE, global_models=2))
    assert not takes_features(line(**SERVER_MODEL), 0)


def test_of_the_servers_settings_those_of_an_ensembles_predictions_do_not_count_for_features():
    ids = {
        training_id(line(**GKT | {"server": SERVER | change}))
        for change in ({}, {"temperature": 2.0}, {"tau_squared": False}, {"sharpening": 2.0})
    }
    assert ids == {training_id(line(**GKT))}
    others = [{"server": SERVER | {"steps": 7}}, {"local": {"gkt": {"alpha": 0.5}}}]
    assert len({training_id(line(**GKT | change)) for change in others} | ids) == 3
    unread = {"ensemble": "clients", "distillation": "l1", "public": "svhn"}
    assert training_id(line(**GKT | unread)) in ids
