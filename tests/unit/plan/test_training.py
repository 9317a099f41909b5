"""Files of a round of training: where they lie, and what each is made from."""

from itertools import product

from tests.shared import recipes
from tests.shared.graph import lists_of
from tests.shared.recipes import (
    DSFL,
    FEDDF,
    FEDSDD,
    GKT,
    RANDOM,
    STRAGGLERS,
    after,
)

from fedstage.plan import data_files
from fedstage.plan.training import (
    aggregated_model,
    aggregation,
    global_model,
    local_training,
    logits,
    participants_table,
    updates,
)
from fedstage.plan.training_folder import public_file, training_folder
from fedstage.protocol.rounds import base_round

BATCH_NORM = {"model": "resnet8"}
RE_ESTIMATE = {"aggregation": {"batch_norm": "re_estimate"}}
CLIENTS_ALONE = DSFL | {"global": None}
START = "results/local_models/a/core.safetensors"


def recipe(**changes):
    return recipes.recipe(**{"global_models": 2, "participants": 8} | changes)


def read(file):
    """Return what the job of a file reads, without what all jobs read."""
    found = lists_of(file.job.inputs)
    assert found.pop("recipe") == [f"{file.job.folder}/recipe.yaml"]
    if "info" in found:
        assert found.pop("info") == [data_files.data_file(file.job.config.data, "info")]
    return found


def states(config, round_, *groups):
    return [aggregation(config, round_, group, output="new_state") for group in groups]


# --- paths ----------------------------------------------------------------------------------------


def test_paths_of_a_round():
    taught = recipe(**FEDSDD)
    own, plain = training_folder(taught), training_folder(recipe())
    for folder, round_, group in ((plain, 1, 0), (own, 12, 0), (plain, 12, 1)):
        files = [
            aggregated_model(taught, round_, group),
            participants_table(taught, round_, group),
            *updates(taught, round_, group)[:2],
            logits(taught, round_, group, "clients", "test"),
        ]
        first = 4 * group
        assert files == [f"{folder}/round_{round_:04d}/group_{group}/{name}" for name in (
            "aggregated.safetensors", "participants.parquet", f"participant_{first}.safetensors",
            f"participant_{first + 1}.safetensors", "logits/clients-test.safetensors")]  # fmt: skip
    # A distilled model is of what taught it even in the first round.
    assert global_model(taught, 1, 0) == f"{own}/round_0001/group_0/distilled.safetensors"
    assert global_model(taught, 1, 1) == aggregated_model(taught, 1, 1)
    scaffold = recipe(local="scaffold")
    folder = training_folder(scaffold)
    assert states(scaffold, 3, 1) == [f"{folder}/round_0003/group_1/state.safetensors"]
    assert "new_state" not in aggregation.job(taught, 3, 1).files


def test_a_run_starts_from_the_initial_model_of_each_group_or_from_another_run():
    models = {"architectures": ["cnn_small", "logistic_regression"]}
    one, started, served = recipe(**models), {"start": START}, {"server_model": True}
    initial = [
        data_files.initial_weights(one.data, recipe(model=model).model, 0, group)
        for group, model in enumerate(models["architectures"])
    ]
    for changes, expected in (
        ({}, initial),
        (served | started, [START, START]),
        (served | started | {"start_of": "server"}, [START, initial[1]]),
        (started, [START, START]),
    ):
        found = [global_model(recipe(**models | changes), 0, group) for group in (0, 1)]
        assert found == expected, changes
    assert global_model(recipe(seed=1), 0, 0) != initial[0]


def test_a_servers_model_is_the_last_distilled_one_however_late_that_is():
    """Nothing goes back round by round."""
    served = FEDDF | {"server_model": True}
    late = recipe(**served | after(9000))
    initial = global_model(late, 0, 0)
    assert global_model(late, 9000, 0) == aggregated_model(late, 9001, 0) == initial
    assert global_model(late, 9001, 0).endswith("/round_9001/group_0/distilled.safetensors")
    assert aggregated_model(late, 9002, 0) == global_model(late, 9001, 0)
    assert "/round_9000/" in global_model(late, 9000, 1)
    # Round 2 is idle.
    away = recipe(**served, **STRAGGLERS, withdraw_stale=True)
    assert global_model(away, 2, 0) == aggregated_model(away, 3, 0) == global_model(away, 1, 0)
    assert "/round_0003/" in global_model(away, 3, 0)
    assert global_model(away, 2, 1) == aggregated_model(away, 2, 1)


# --- local training -------------------------------------------------------------------------------


def test_participants_and_aggregations_read_the_state_of_the_round_before():
    adam = {"aggregation": {"server_optimizer": "adam"}}
    local = BATCH_NORM | {"aggregation": {"batch_norm": "local"}}
    for changes, of_participants, of_aggregation in (
        ({}, [], []),
        ({"local": "scaffold"}, [1], [1]),
        (local, [1], [1]),
        ({"aggregation": {"batch_norm": "local"}}, [], []),
        (adam, [], [1]),  # what the server remembers no participant reads
        (adam | {"compression": "stc"}, [1], [1]),
        (adam | {"local": "scaffold"}, [1], [1]),
    ):
        one = recipe(**changes)
        for stage, groups in ((local_training, of_participants), (aggregation, of_aggregation)):
            first, later = (stage(one, t, 1, *([4] * (stage is local_training))) for t in (1, 5))
            assert read(later).get("state", []) == states(one, 4, *groups), changes
            assert "state" not in read(first)


def test_a_participant_that_is_late_reads_what_was_there_after_its_base_round():
    one = recipe(**FEDDF | STRAGGLERS | {"local": {"fedgkd": {"models": 2}}})
    for round_, base, history in ((1, 0, []), (2, 0, []), (3, 2, [1, 2]), (6, 4, [3, 4])):
        found = read(updates(one, round_, 0)[1])
        assert found["start"] == [global_model(one, base, 0)]
        assert found.get("history", []) == [global_model(one, t, 0) for t in history]
        assert found["participation"] == [data_files.participation_table(one, round_)]
    drawn = recipe(**FEDDF | RANDOM)
    for round_, participant in product(range(1, 7), range(4)):
        (start,) = read(local_training(drawn, round_, 0, participant))["start"]
        assert start == global_model(drawn, base_round(drawn, round_, participant), 0)


# --- aggregation ----------------------------------------------------------------------------------


def test_an_aggregation_reads_public_images_for_statistics_or_to_count_logits():
    for changes, reads in (
        (BATCH_NORM | RE_ESTIMATE, True),
        (BATCH_NORM | RE_ESTIMATE | {"public": {"digits": {"split_seed": 4}}}, True),
        (RE_ESTIMATE, False),
        (BATCH_NORM, False),
        (FEDDF, False),
        (CLIENTS_ALONE, True),
        (GKT, False),
    ):
        one = recipe(**changes)
        assert read(aggregation(one, 3, 1)).get("public", []) == [public_file(one)] * reads, changes
