import hashlib
import json
import re
from functools import cache
from itertools import product

import pytest

from fedstage.plan import data_files, one_shot_artefacts
from fedstage.plan.identity import local_id
from fedstage.plan.one_shot_sharing import alone
from fedstage.plan.rounds import evaluated_rounds
from fedstage.plan.scores import EVALUATION
from fedstage.plan.teaching import member_logits, member_models, teacher_logits
from fedstage.plan.training import (
    AGGREGATION,
    aggregated_model,
    global_model,
    participants_table,
    updates,
)
from fedstage.plan.training_folder import public_file, public_id, training_folder, training_id
from fedstage.settings.ensembles import Aggregated, Bayesian, Clients
from fedstage.settings.equivalences import simplest
from fedstage.settings.lines import Line

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
FEDDF = {"ensemble": "clients", "global": "basic", "server": SERVER}
FEDSDD = {
    "global_models": 4,
    "ensemble": {"aggregated": {"checkpoints": 1}},
    "global": "designated",
    "server": SERVER,
}


def line(**changes):
    return Line.model_validate({**BASE, **changes})


def fedsdd(checkpoints=1, temperature=4.0, **changes):
    ensemble = {"aggregated": {"checkpoints": checkpoints}}
    server = {**SERVER, "temperature": temperature}
    return line(**{**FEDSDD, "ensemble": ensemble, "server": server, **changes})


# --- the same path only for the same content ------------------------------------------------------
#
# `content_of` says what an un-shared run would compute: each file as a digest of the settings that
# its stage reads and of the files that it reads, written down without any function of the package.

LOCAL_FIELDS = ("model", "client", "on_divergence", "numerics", "validation")
ROUNDS = range(1, 7)


def mark(*parts):
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def content_of(line):
    settings = line.model_dump(mode="json", by_alias=True)
    groups, trainer, ensemble = line.global_models, settings["global"], settings["ensemble"]
    common = [settings[name] for name in ("data", "clients", "partition", "validation", "seed")]
    training = [settings[name] for name in LOCAL_FIELDS]
    local = {key: value for key, value in settings["local"].items() if key != "control"}
    shared = settings["local"].get("control") == "shared"
    average, statistics = settings["aggregation"], None
    if settings["model"].get("norm") == "batch":
        statistics = average["batch_norm"]
    rest = line.participants % groups
    extra = {"spread": [1] * rest + [0] * groups, "main": [rest] + [0] * groups}[line.remainder]
    shares = [line.participants // groups + extra[k] for k in range(groups)]
    first_slots = [sum(shares[:k]) for k in range(groups)]

    @cache
    def state(t, k):
        if t == 0 or (line.local.name != "scaffold" and statistics != "local"):
            return None
        return mark("state", state(t - 1, k), updates(t, k))

    @cache
    def updates(t, k):
        slots = range(first_slots[k], first_slots[k] + shares[k])
        states = [state(t - 1, other) for other in (range(groups) if shared else [k])]
        before = [global_model(t - 1, k), states, local]
        return [mark("update", common, training, line.participants, before, t, s) for s in slots]

    @cache
    def aggregated(t, k):
        how = [average["weights"], average["learning_rate"], statistics]
        if statistics == "re_estimate":
            how.append(settings["public"])
        return mark("aggregated", how, updates(t, k), global_model(t - 1, k))

    def drawn(t, k, what):
        """What a Bayesian ensemble draws from; the released Gaussian is about the start."""
        start = global_model(t - 1, k) if what["variant"] == "as_released" else None
        shape = [what[name] for name in ("distribution", "samples", "variant", "concentration")]
        return [updates(t, k), aggregated(t, k), start, shape]

    def teacher(t):
        if ensemble["name"] == "clients":
            return [updates(t, k) for k in range(groups)]
        if ensemble["name"] == "bayesian":
            return [drawn(t, k, ensemble) for k in range(groups)]
        past = range(max(1, t + 1 - ensemble["checkpoints"]), t + 1)
        return [aggregated(s, k) for s in past for k in range(groups)]

    @cache
    def global_model(t, k):
        if t == 0:
            return mark("initial", settings["data"], settings["model"], line.seed, k)
        student = trainer is not None and (trainer["name"] == "basic" or k == 0)
        if not student or t <= trainer["warm_up"]:
            return aggregated(t, k)
        weights = [ensemble.get("weights"), ensemble["average"]]
        how = [settings["server"], settings["public"], settings["numerics"], line.seed, k, t]
        return mark("distilled", how, weights, teacher(t), aggregated(t, k))

    return state, updates, aggregated, global_model, drawn


def files_of(line):
    """Yield each path of the first rounds of a line, with its content."""
    state, updates, aggregated, global_model, drawn = content_of(line)
    for t, k in product(ROUNDS, range(line.global_models)):
        paths = updates(line, t, k)
        assert len(paths) == len(updates(t, k))
        yield from zip(paths, updates(t, k), strict=True)
        yield aggregated_model(line, t, k), aggregated(t, k)
        yield participants_table(line, t, k), mark("participants", updates(t, k))
        yield AGGREGATION(line, t, k, output="new_state"), mark("state", state(t, k), updates(t, k))
        yield global_model(line, t, k), global_model(t, k)
        (aggregated_logits,) = logits_of_round(line, t, k, Aggregated(name="aggregated"))
        yield aggregated_logits, mark("logits", aggregated(t, k))
        (clients_logits,) = logits_of_round(line, t, k, Clients(name="clients"))
        yield clients_logits, mark("logits", updates(t, k))
        for ensemble in DRAWN if t == 3 else ():
            first, second, own = logits_of_round(line, t, k, ensemble)
            assert (first, second) == (aggregated_logits, clients_logits)
            yield own, mark("logits", drawn(t, k, ensemble.model_dump()))


DRAWN = [
    Bayesian(name="bayesian"),
    Bayesian(name="bayesian", samples=3, average="probabilities"),
    Bayesian(name="bayesian", variant="as_released"),
    Bayesian(name="bayesian", distribution="dirichlet"),
    Bayesian(name="bayesian", distribution="dirichlet", concentration=0.5),
]


def logits_of_round(line, t, k, ensemble):
    paths = member_logits(line, t, ensemble, "test")
    return [path for path in paths if f"/group_{k}/" in path]


def distillations(groups):
    """Return all methods: undistilled, and each global trainer, warm-up and ensemble."""
    yield {"global_models": groups}
    ensembles = [{"aggregated": {"checkpoints": r}} for r in range(1, 5)]
    ensembles += [{"clients": {"weights": weights}} for weights in ("uniform", "samples")]
    ensembles += [{"clients": {"average": "probabilities"}}, {"bayesian": {"samples": 3}}]
    ensembles.append({"bayesian": {"variant": "as_released"}})
    for kind, warm_up, ensemble in product(("basic", "designated"), range(4), ensembles):
        trainer = {kind: {"warm_up": warm_up}}
        method = {"global_models": groups, "global": trainer, "ensemble": ensemble}
        yield {**method, "server": SERVER}
        if warm_up == 1:
            yield {**method, "server": {**SERVER, "temperature": 1.0}}
            yield {**method, "server": SERVER, "public": "svhn"}
            yield {**method, "server": {**SERVER, "swa": {"every": 2}}}


OTHER_SETTINGS = [
    {"seed": 1},
    {"clients": 12},
    {"participants": 9},
    {"partition": "iid"},
    {"validation": 0.1},
    {"data": {"digits": {"split_seed": 1}}},
    {"model": {"cnn_small": {"width": 8}}},
    {"client": {**CLIENT, "learning_rate": 0.1}},
    {"local": {"fedprox": {"mu": 0.1}}},
    {"local": "scaffold"},
    {"aggregation": {"weights": "uniform"}},
    {"on_divergence": "drop"},
    {"numerics": {"threads": 2}},
]


BATCH_NORM = {"model": {"cnn_small": {"norm": "batch"}}}
#: What decides on groups, states and running statistics; each has no effect in some lines.
BETWEEN_ROUNDS = [
    {"remainder": "main"},
    {"local": {"scaffold": {"control": "shared"}}},
    {"local": {"scaffold": {"control": "shared"}}, "remainder": "main"},
    {"aggregation": {"learning_rate": 0.5}},
    *({"aggregation": {"batch_norm": kind}} for kind in ("local", "re_estimate")),
    *({**BATCH_NORM, "aggregation": {"batch_norm": kind}} for kind in ("local", "re_estimate")),
    {
        **BATCH_NORM,
        "aggregation": {"batch_norm": "local"},
        "local": {"scaffold": {"control": "shared", "option": "I"}},
    },
]


WARM = {"designated": {"warm_up": 1}}


def few_distillations(groups):
    yield {"global_models": groups}
    yield {"global_models": groups, "public": "svhn"}
    for kind, warm_up in product(("basic", "designated"), range(3)):
        trainer = {kind: {"warm_up": warm_up}}
        method = {"global_models": groups, "global": trainer, "ensemble": "aggregated"}
        yield {**method, "server": SERVER}
        yield {**method, "server": SERVER, "public": "svhn"}


def all_lines():
    for groups in (1, 2, 3, 4):
        yield from (line(**method) for method in distillations(groups))
    for groups, changes in product((1, 2, 3, 4), BETWEEN_ROUNDS):
        yield from (line(**changes, **method) for method in few_distillations(groups))
    for changes in OTHER_SETTINGS:
        yield line(**changes)
        yield line(**{**FEDDF, **changes})
        yield fedsdd(2, **changes)


def beside_distillation(line):
    unread = {"global_trainer", "ensemble", "server", "public"}
    if line.aggregation.batch_norm == "re_estimate" and line.model.norm == "batch":
        unread.remove("public")
    return line.model_dump_json(exclude=unread)


@pytest.fixture(scope="module")
def every_file():
    """Every file of every line: the line's settings beside distillation, path and content."""
    return [
        (beside_distillation(settings), path, content, settings.global_trainer is None)
        for settings in all_lines()
        for path, content in files_of(settings)
    ]


def test_a_path_never_stands_for_two_contents(every_file):
    contents = {}
    for _, path, content, _ in every_file:
        contents.setdefault(path, set()).add(content)
    assert len(contents) > 5000
    assert [path for path, found in contents.items() if len(found) > 1] == []


def test_what_no_distillation_reaches_is_there_once_for_all_distillations(every_file):
    undistilled_files = {
        (line, content, kind(path)): path
        for line, path, content, without_distillation in every_file
        if without_distillation
    }
    shared = 0
    for line, path, content, without_distillation in every_file:
        expected = undistilled_files.get((line, content, kind(path)))
        if expected is not None and not without_distillation:
            assert path == expected
            shared += 1
    assert shared > 5000


def kind(path):
    """Tell apart files of one content that have names of their own, such as slot_0."""
    return path.rpartition("/")[2]


def states_read(settings, t, k):
    return [path.split("/", 3)[3] for path in artefacts.states_before(settings, t, k)]


def test_shared_control_variates_are_read_from_all_groups():
    shared = {"scaffold": {"control": "shared"}}
    own = ["round_0004/group_1/state.safetensors"]
    every = [f"round_0004/group_{group}/state.safetensors" for group in range(3)]
    assert states_read(line(global_models=3, local="scaffold"), 5, 1) == own
    assert states_read(line(global_models=3, local=shared), 5, 1) == every
    assert states_read(line(global_models=3, local=shared), 1, 1) == []
    assert states_read(line(global_models=1, local=shared), 5, 0) == every[:1]
    for local in ("scaffold", shared):
        (before,) = artefacts.own_state_before(line(global_models=3, local=local), 5, 1)
        assert before.endswith(own[0])
    assert artefacts.own_state_before(line(global_models=3, local="scaffold"), 1, 1) == []
    assert artefacts.own_state_before(line(global_models=3), 5, 1) == []


def test_what_only_the_server_remembers_is_read_by_no_participant():
    moments = {"aggregation": {"server_optimizer": "adam"}}
    settings = line(global_models=3, **moments)
    assert states_read(settings, 5, 1) == []
    (before,) = artefacts.own_state_before(settings, 5, 1)
    assert before.endswith("round_0004/group_1/state.safetensors")
    own = ["round_0004/group_1/state.safetensors"]
    assert states_read(line(global_models=3, compression="stc", **moments), 5, 1) == own
    assert states_read(line(global_models=3, local="scaffold", **moments), 5, 1) == own


def test_shared_control_variates_carry_a_distillation_to_all_groups_a_round_later():
    plain = line(global_models=4, local={"scaffold": {"control": "shared"}})
    taught = fedsdd(local={"scaffold": {"control": "shared"}}, **{"global": WARM})
    for t in range(1, 7):
        same = [aggregated_model(taught, t, k) == aggregated_model(plain, t, k) for k in range(4)]
        # Round 2 ends in a distillation; round 3 of group 0 starts from it; round 4 of all groups
        # reads what round 3 of group 0 sent.
        assert same == [t < 3] + [t < 4] * 3


def test_running_statistics_of_their_own_make_a_state():
    kept = {"aggregation": {"batch_norm": "local"}, "global_models": 3}
    own = ["round_0004/group_1/state.safetensors"]
    assert states_read(line(**BATCH_NORM, **kept), 5, 1) == own
    assert states_read(line(**kept), 5, 1) == []


def test_public_images_are_read_by_aggregations_that_estimate_statistics():
    estimated = {"aggregation": {"batch_norm": "re_estimate"}}
    held_out = data_files.data_file(line().data, "held_out")
    assert artefacts.aggregation_images(line(**BATCH_NORM, **estimated)) == [held_out]
    settings = line(**BATCH_NORM, **estimated, public="svhn")
    assert artefacts.aggregation_images(settings) == [
        data_files.data_file(settings.public, "train")
    ]
    assert artefacts.aggregation_images(line(**estimated)) == []
    assert artefacts.aggregation_images(line(**BATCH_NORM)) == []


# --- what published methods share -----------------------------------------------------------------


def trained(line, groups, rounds):
    return {
        path
        for t, k in product(rounds, groups)
        for path in (*updates(line, t, k), aggregated_model(line, t, k))
    }


def test_fedsdd_shares_all_but_the_distilled_chain():
    variants = [
        *(fedsdd(checkpoints) for checkpoints in (1, 2, 4)),
        *(fedsdd(1, temperature) for temperature in (1.0, 2.0, 8.0)),
        line(global_models=4),
    ]
    rounds = range(1, 11)
    shared = trained(variants[0], range(1, 4), rounds) | trained(variants[0], [0], [1])
    for other in variants[1:]:
        assert trained(other, range(1, 4), rounds) | trained(other, [0], [1]) == shared
    own = [trained(variant, [0], range(2, 11)) for variant in variants]
    assert len(set.union(*own)) == sum(map(len, own))


def test_feddf_shares_the_first_round_with_fedavg_and_no_later_one():
    feddf, fedavg = line(**FEDDF), line()
    assert trained(feddf, [0], [1]) == trained(fedavg, [0], [1])
    assert not trained(feddf, [0], range(2, 6)) & trained(fedavg, [0], range(2, 6))
    assert global_model(feddf, 1, 0) != global_model(fedavg, 1, 0)


def test_warm_up_of_two_shares_three_aggregations_of_group_0():
    warm = fedsdd(1, **{"global": {"designated": {"warm_up": 2}}})
    plain = line(global_models=4)
    same = [aggregated_model(warm, t, 0) == aggregated_model(plain, t, 0) for t in range(1, 7)]
    assert same == [True, True, True, False, False, False]
    same = [global_model(warm, t, 0) == global_model(plain, t, 0) for t in range(1, 7)]
    assert same == [True, True, False, False, False, False]


def test_runs_of_different_length_share_all_rounds_of_the_shorter_one():
    # No function of a round's files is told how long the run is; only the metrics' name is.
    names = {EVALUATION(line(), "global_model", "test", n, 1) for n in (5, 6)}
    assert len(names) == 2
    assert len({name.split("/metrics/")[0] for name in names}) == 1


def test_seeds_share_the_data_set_and_nothing_else():
    one, other = line(seed=0), line(seed=1)
    assert data_files.data_file(one.data, "train") == data_files.data_file(other.data, "train")
    assert data_files.clients_table(one) != data_files.clients_table(other)
    assert data_files.participation_table(one, 1) != data_files.participation_table(other, 1)
    assert global_model(one, 0, 0) != global_model(other, 0, 0)


def test_methods_of_a_seed_share_partition_participation_and_initial_models():
    methods = [line(), line(**FEDDF), fedsdd(), line(local={"fedprox": {"mu": 0.1}})]
    assert len({data_files.clients_table(method) for method in methods}) == 1
    assert len({data_files.label_histogram(method) for method in methods}) == 1
    assert len({data_files.participation_table(method, 7) for method in methods}) == 1
    assert len({global_model(method, 0, 0) for method in methods}) == 1


# --- paths ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("remainder", "groups"),
    [("spread", ((0, 1, 2), (3, 4, 5), (6, 7))), ("main", ((0, 1, 2, 3), (4, 5), (6, 7)))],
)
def test_uneven_groups_of_eight_participants(remainder, groups):
    settings = line(global_models=3, remainder=remainder)
    slots = [
        [path.rpartition("/")[2] for path in updates(settings, 2, group)] for group in range(3)
    ]
    assert slots == [[f"slot_{slot}.safetensors" for slot in group] for group in groups]


def test_paths_of_a_round():
    settings = fedsdd()
    own = f"results/training/{training_id(settings)}"
    plain = f"results/training/{training_id(line(global_models=4))}"
    assert training_folder(settings) == own
    assert f"{training_folder(settings)}/line.yaml" == f"{own}/line.yaml"
    assert artefacts.round_folder(settings, 1, 0) == f"{plain}/round_0001/group_0"
    assert artefacts.round_folder(settings, 12, 0) == f"{own}/round_0012/group_0"
    assert artefacts.round_folder(settings, 12, 3) == f"{plain}/round_0012/group_3"
    folder = f"{own}/round_0012/group_0"
    assert aggregated_model(settings, 12, 0) == f"{folder}/aggregated.safetensors"
    assert participants_table(settings, 12, 0) == f"{folder}/participants.parquet"
    assert AGGREGATION(settings, 12, 0, output="new_state") == f"{folder}/state.safetensors"
    assert updates(settings, 12, 0) == [
        f"{folder}/slot_0.safetensors",
        f"{folder}/slot_1.safetensors",
    ]


def test_distilled_model_stands_in_its_own_line_even_in_the_first_round():
    settings = fedsdd()
    own = f"results/training/{training_id(settings)}"
    assert global_model(settings, 1, 0) == f"{own}/round_0001/group_0/distilled.safetensors"
    assert global_model(settings, 1, 1) == aggregated_model(settings, 1, 1)


def test_global_model_of_round_zero_is_the_initial_model_of_the_group():
    settings = fedsdd()
    assert global_model(settings, 0, 2) == data_files.initial_model(
        settings.data, settings.model, settings.seed, 2
    )
    assert global_model(settings, 0, 2).endswith("/group_2.safetensors")


def test_the_servers_model_alone_may_have_a_start():
    start = "results/local_models/a/core.safetensors"
    settings = line(server_model=True, global_models=2, start=start)
    assert [global_model(settings, 0, group) for group in (0, 1)] == [start, start]
    own = settings.model_copy(update={"start_of": "server"})
    initial = data_files.initial_model(own.data, own.model, own.seed, 1)
    assert [global_model(own, 0, group) for group in (0, 1)] == [start, initial]


def test_the_core_is_a_share_of_the_partition_or_all_training_samples():
    settings = line(
        core={}, public="core", ensemble="clients", server=SERVER, **{"global": "basic"}
    )
    folder = data_files.clients_table(settings).removesuffix("/clients.parquet")
    assert public_file(settings) == f"{folder}/core.safetensors"
    assert folder != data_files.clients_table(line()).removesuffix("/clients.parquet")
    every = line(core={"samples": "all"}, public="core")
    assert data_files.core_file(every) == data_files.data_file(every.data, "train")
    assert data_files.clients_table(every) == data_files.clients_table(line())


def test_unread_settings_do_not_move_a_line():
    settings = line(ensemble="clients", server=SERVER, public="svhn")
    assert training_folder(settings) == training_folder(line())
    assert EVALUATION(settings, "clients", "test", 3, 1) == EVALUATION(
        line(), "clients", "test", 3, 1
    )


def test_initial_models_of_groups_are_of_their_architectures():
    models = ["cnn_small", "logistic_regression"]
    settings = line(global_models=2, architectures=models)
    plain = line(global_models=2)
    assert global_model(settings, 0, 0) == global_model(plain, 0, 0)
    other = line(model="logistic_regression", global_models=2)
    assert global_model(settings, 0, 1) == global_model(other, 0, 1)


def test_data_files():
    data = line().data
    folder = data_files.data_file(data, "info").removesuffix("/info.json")
    assert data_files.data_file(data, "held_out") == f"{folder}/held_out.safetensors"
    assert data_files.samples_file(line(), "test") == f"{folder}/test.safetensors"
    assert data_files.samples_file(line(), "test_own") == f"{folder}/test_own.safetensors"
    assert data_files.samples_file(line(), "validation") == f"{folder}/train.safetensors"


@pytest.mark.parametrize(
    ("round", "name"),
    [
        (1, "rounds_0001-0100"),
        (100, "rounds_0001-0100"),
        (101, "rounds_0101-0200"),
        (9900, "rounds_9801-9900"),
    ],
)
def test_participation_stands_in_blocks_that_do_not_depend_on_the_length(round, name):
    path = data_files.participation_table(line(), round)
    assert path == f"results/participation/8_of_10-seed0/{name}.parquet"


# --- ensembles ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("round", "checkpoints", "window"),
    [(1, 1, [1]), (5, 1, [5]), (1, 3, [1]), (2, 3, [1, 2]), (3, 3, [1, 2, 3]), (7, 3, [5, 6, 7])],
)
def test_temporal_ensemble_has_the_checkpoints_that_there_are(round, checkpoints, window):
    settings = fedsdd(checkpoints)
    members = teacher_logits(settings, round)
    assert members == [
        f"{artefacts.round_folder(settings, past, group)}/logits/aggregated-held_out.safetensors"
        for past in window
        for group in range(4)
    ]


def test_ensemble_of_clients_has_those_of_all_groups_in_this_round_only():
    settings = fedsdd(**{"ensemble": "clients"})
    assert teacher_logits(settings, 3) == [
        f"{artefacts.round_folder(settings, 3, group)}/logits/clients-held_out.safetensors"
        for group in range(4)
    ]


def test_weights_of_an_ensemble_do_not_change_its_members():
    ensembles = [Clients(name="clients", weights=w) for w in ("uniform", "samples")]
    one, other = (member_logits(line(), 2, e, "test") for e in ensembles)
    assert one == other


def test_bayesian_ensemble_has_the_members_of_others_and_its_own():
    settings = fedsdd(ensemble={"bayesian": {"distribution": "dirichlet", "samples": 3}})
    folders = [artefacts.round_folder(settings, 3, group) for group in range(4)]
    assert teacher_logits(settings, 3) == [
        f"{folder}/logits/{kind}-held_out.safetensors"
        for folder in folders
        for kind in ("aggregated", "clients", "dirichlet_3")
    ]


@pytest.mark.parametrize("group", [0, 1])
def test_models_behind_the_members(group):
    settings = fedsdd()
    updates, aggregated = (
        updates(settings, 3, group),
        aggregated_model(settings, 3, group),
    )
    start = global_model(settings, 2, group)
    expected = {
        "clients": updates,
        "aggregated": [aggregated],
        "gaussian_3": [*updates, aggregated],
        "dirichlet_3_0.5": [*updates, aggregated],
        "gaussian_3_as_released": [*updates, aggregated, start],
    }
    found = {kind: list(member_models(settings, 3, group, kind)) for kind in expected}
    assert found == expected
    released = member_models(settings, 3, group, "gaussian_3_as_released")
    assert (released.aggregated, released.start) == (aggregated, start)


ORIGINAL = {
    **FEDDF,
    "data": {"digits": {"server_validation": 9}},
    "server": {**SERVER, "drop_worst": "as_published"},
    "global_models": 2,
}


def test_drop_worst_judges_all_clients_and_averages_the_students_group_anew():
    settings = line(**ORIGINAL)
    folders = [artefacts.round_folder(settings, 3, group) for group in range(2)]
    images = "logits/clients-server_validation.safetensors"
    assert artefacts.drop_worst_logits(settings, 3) == [f"{folder}/{images}" for folder in folders]
    assert artefacts.fused_updates(settings, 3, 1) == updates(settings, 3, 1)
    own = data_files.data_file(settings.data, "server_validation")
    assert artefacts.server_validation(settings) == own
    assert artefacts.teaching_logits(settings) == [
        ("clients", "held_out", public_file(settings)),
        ("clients", "server_validation", own),
    ]


def test_distillations_read_the_servers_images_only_where_something_is_judged_by_them():
    plain = line(**{**ORIGINAL, "server": SERVER})
    assert artefacts.drop_worst_logits(plain, 3) == artefacts.fused_updates(plain, 3, 1) == []
    assert artefacts.server_validation(plain) is None
    assert len(artefacts.teaching_logits(plain)) == 1
    stopped = line(**{**ORIGINAL, "server": {**SERVER, "early_stopping": {}}})
    assert artefacts.server_validation(stopped) == data_files.data_file(
        stopped.data, "server_validation"
    )
    assert artefacts.drop_worst_logits(stopped, 3) == []


def test_public_images():
    held_out, other = line(**FEDDF), line(**{**FEDDF, "public": {"svhn": {"train_size": 100}}})
    assert public_id(held_out) == "held_out"
    assert public_file(held_out) == data_files.data_file(held_out.data, "held_out")
    assert public_file(other) == data_files.data_file(other.public, "train")
    assert public_file(other) == f"results/data/{public_id(other)}/train.safetensors"
    assert teacher_logits(other, 1)[0].endswith(f"/clients-{public_id(other)}.safetensors")


# --- results --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rounds", "every", "expected"),
    [
        (5, 1, [1, 2, 3, 4, 5]),
        (5, 2, [2, 4, 5]),
        (6, 3, [3, 6]),
        (1, 1, [1]),
        (3, 10, [3]),
    ],
)
def test_evaluated_rounds_end_with_the_last(rounds, every, expected):
    assert evaluated_rounds(rounds, every) == expected


def test_metrics_have_a_file_for_each_evaluation():
    kinds = list(product(("global_model", "clients"), ("test", "validation"), (8, 9), (1, 2)))
    paths = {EVALUATION(line(), *kind) for kind in kinds}
    assert len(paths) == len(kinds)
    (path, *_) = sorted(paths)
    assert path.startswith(f"results/training/{training_id(line())}/metrics/")
    assert EVALUATION(line(), "aggregated_2", "test", 8, 2).endswith(
        "/metrics/aggregated_2-test/rounds_0008_every_2.parquet"
    )


def test_unfederated_models():
    separate, pooled = (alone(line(), 4, pooled=pooled) for pooled in (False, True))
    folder = f"results/local_models/{local_id(separate)}"
    assert one_shot_artefacts.local_models(separate) == [
        f"{folder}/client_{client}.safetensors" for client in range(10)
    ]
    assert one_shot_artefacts.local_models(pooled) == [
        f"results/local_models/{local_id(pooled)}/pooled.safetensors"
    ]
    assert one_shot_artefacts.local_metrics_file(separate, "test", 4) == (
        f"{folder}/metrics/fp32/each_client-test-rounds_0004.parquet"
    )
    assert one_shot_artefacts.local_metrics_file(separate, "test", 4, client=0) == (
        f"{folder}/metrics/fp32/client_0-test-rounds_0004.parquet"
    )
    assert one_shot_artefacts.local_metrics_file(pooled, "validation", 4) == (
        f"{one_shot_artefacts.local_folder(pooled)}/metrics/fp32/pooled-validation-rounds_0004.parquet"
    )


def test_all_clients_or_one_are_scored_or_the_pooled_model():
    separate, pooled = (alone(line(), 4, pooled=pooled) for pooled in (False, True))
    models = one_shot_artefacts.local_models(separate)
    scored = one_shot_artefacts.scored_models(separate)
    assert scored == {
        "each_client": models,
        **{f"client_{client}": [models[client]] for client in range(10)},
    }
    assert one_shot_artefacts.scored_models(pooled) == {
        "pooled": one_shot_artefacts.local_models(pooled)
    }


def test_every_path_is_one_that_needs_no_quotes():
    settings = fedsdd(2, **{"public": "svhn"})
    paths = [path for path, _ in files_of(settings)]
    paths += [
        data_files.data_file(settings.data, "info"),
        data_files.clients_table(settings),
    ]
    paths += [data_files.participation_table(settings, 1), f"{training_folder(settings)}/line.yaml"]
    paths += [public_file(settings), *teacher_logits(settings, 3)]
    assert all(re.fullmatch(r"results(/[A-Za-z0-9_][A-Za-z0-9_.-]*)+", path) for path in paths)


def test_a_line_that_is_not_normalised_has_the_files_of_the_normalised_one():
    settings = line(ensemble="clients", server=SERVER)
    assert settings != simplest(settings)
    assert trained(settings, [0], [1, 2]) == trained(line(), [0], [1, 2])


# --- a server's model -----------------------------------------------------------------------------


def test_a_servers_model_is_the_initial_one_until_its_first_distillation():
    """However late that is: nothing goes back round by round."""
    served = FEDDF | {"global_models": 2, "server_model": True}
    late = line(**served | {"global": {"basic": {"warm_up": 9000}}})
    initial = global_model(late, 0, 0)
    assert global_model(late, 9000, 0) == aggregated_model(late, 9001, 0)
    assert global_model(late, 9000, 0) == initial
    assert global_model(late, 9001, 0).endswith("/round_9001/group_0/distilled.safetensors")
    assert aggregated_model(late, 9002, 0) == global_model(late, 9001, 0)
    assert "/round_9000/" in global_model(late, 9000, 1)
