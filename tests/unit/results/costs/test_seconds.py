"""Seconds of clients and of the server, from records as jobs write them."""

import re
from pathlib import PurePosixPath

import pytest
from measured import SERVER, SETTINGS

from fedstage.errors import FedstageError
from fedstage.plan import discriminators, unfederated
from fedstage.plan import one_shot as shot
from fedstage.plan.jobs import jobs_of
from fedstage.plan.one_shot_sharing import local_recipe
from fedstage.results.costs.seconds import Seconds, seconds_of
from fedstage.results.runs_file import Part
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.settings.recipes import LocalRecipe, Recipe
from fedstage.settings.runs import RunLength
from fedstage.storage.files import save_json

LOCAL = SETTINGS | {"data": {"digits": {"held_out": 100}}, "clients": 3}
BASE = LOCAL | {"server": SERVER}
ROUNDS = BASE | {"participants": 2, "ensemble": "clients", "global": "basic"}
TAUGHT = BASE | {"public": "held_out", "aggregator": "averaging", "distillation": "kl"}
MLP = {"aggregator_fraction": 0.1, "aggregator": "mlp"}
TRAINED = {
    "federated": {"federated": {"rounds": 5}},
}


def write(root, stage, outputs, seconds, inputs=(), made="2026", **changes):
    """A record beside the log of a job, as `fedstage.storage.provenance` writes it."""
    _, identity, *rest = PurePosixPath(outputs[0]).parts[1:]
    path = root.joinpath("results/logs", stage, identity, *rest).with_suffix(".record.json")
    while path.exists():
        path = path.with_name("again_" + path.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    record = {
        "stage": stage,
        "made": made,
        "compute_s": seconds,
        "options": {},
        "inputs": {"read": dict.fromkeys(inputs, "0123456789abcdef")},
        "outputs": {"output": dict.fromkeys(outputs, "0123456789abcdef")},
    }
    save_json(path, record | changes)
    return path


def flat(files):
    return [
        one for value in files.values() for one in ([value] if isinstance(value, str) else value)
    ]


def of_models(root, recipe):
    """Records of the clients' models: 1, 2 and 4 seconds."""
    local = local_recipe(recipe)
    for client, model in enumerate(unfederated.local_models(local)):
        write(root, "local_model", [model], 2.0**client, flat(model.job.inputs))


def of_logits(root, recipe, images, seconds):
    local = local_recipe(recipe)
    for client in range(recipe.clients):
        path = unfederated.client_logits(local, f"client_{client}", images)
        read = flat(path.job.inputs)
        write(root, "client_logits", [path], seconds, read, options={"images": images})


def of_aggregator(root, recipe, seconds):
    made = shot.aggregator(recipe)
    write(root, "aggregator", [made], seconds, flat(shot.aggregator.job(recipe).inputs))


def part(recipe, rounds=1):
    kinds = {Recipe: "federated", OneShotRecipe: "one_shot", LocalRecipe: "local"}
    kind = kinds[type(recipe)]
    length = RunLength.model_validate({"rounds": rounds})
    return Part.model_validate({"length": length, kind: recipe})


# --- one round ------------------------------------------------------------------------------------


def test_a_student_costs_the_server_and_what_is_before_it_the_clients(tmp_path):
    recipe = OneShotRecipe.model_validate(TAUGHT)
    of_models(tmp_path, recipe)
    of_logits(tmp_path, recipe, "held_out", 10.0)
    of_logits(tmp_path, recipe, "test", 1000.0)  # evaluation, which does not count
    of_aggregator(tmp_path, recipe, 0.5)
    made = shot.student_file(recipe)
    write(tmp_path, "distilled_model", [made], 100.0, flat(shot.distilled_model.job(recipe).inputs))
    assert seconds_of(tmp_path, [part(recipe)]) == Seconds(clients=7.0, server=130.5)


def test_moments_are_measured_by_clients_and_the_head_is_the_servers(tmp_path):
    recipe = OneShotRecipe.model_validate(
        BASE | {"model": "resnet8", "distillation": "closed_form"}
    )
    for client in range(recipe.clients):
        job = shot.feature_moments.job(recipe, client)
        write(tmp_path, "feature_moments", [*job.files.values()], 2.0**client, flat(job.inputs))
    job = shot.closed_form_model.job(recipe)
    write(tmp_path, "closed_form_model", [*job.files.values()], 0.5, flat(job.inputs))
    assert seconds_of(tmp_path, [part(recipe)]) == Seconds(clients=7.0, server=0.5)


def test_clients_that_train_an_aggregator_pay_for_it(tmp_path):
    data = {"data": {"digits": {"held_out": 100, "server_validation": 20}}}
    training = {"aggregator_training": TRAINED["federated"]}
    recipe = OneShotRecipe.model_validate(BASE | data | MLP | training)
    of_models(tmp_path, recipe)
    of_logits(tmp_path, recipe, "aggregator", 10.0)
    of_aggregator(tmp_path, recipe, 20.0)
    assert seconds_of(tmp_path, [part(recipe)]) == Seconds(clients=57.0, server=0.0)


def test_a_job_of_several_files_counts_once_and_its_last_record(tmp_path):
    recipe = OneShotRecipe.model_validate(BASE | {"aggregator": "averaging"})
    of_models(tmp_path, recipe)
    made = shot.aggregator(recipe)
    files = [made, shot.aggregator(recipe, output="snapshots")]
    read = flat(shot.aggregator.job(recipe).inputs)
    write(tmp_path, "aggregator", files, 99.0, read, made="2025")
    write(tmp_path, "aggregator", files, 3.0, read, made="2026")
    assert seconds_of(tmp_path, [part(recipe)]) == Seconds(clients=7.0, server=3.0)


def test_a_file_without_a_record_is_named(tmp_path):
    recipe = OneShotRecipe.model_validate(BASE | {"aggregator": "averaging"})
    of_aggregator(tmp_path, recipe, 1.0)
    missing = unfederated.local_models(local_recipe(recipe))[-1]
    with pytest.raises(
        FedstageError, match=rf"^{re.escape(missing)}: no record below results/logs"
    ):
        seconds_of(tmp_path, [part(recipe)])


@pytest.mark.parametrize(
    ("changes", "expected"),
    [({}, Seconds(clients=7.0, server=0.0)), ({"pooled": True}, Seconds(clients=0.0, server=1.0))],
)
def test_pooled_data_is_the_servers(tmp_path, changes, expected):
    recipe = LocalRecipe.model_validate(LOCAL | changes)
    for client, model in enumerate(unfederated.local_models(recipe)):
        write(tmp_path, "local_model", [model], 2.0**client)
    assert seconds_of(tmp_path, [part(recipe)]) == expected


# --- rounds ---------------------------------------------------------------------------------------


def of_rounds(root, recipe, rounds):
    """A second a training, 10 an aggregation, 100 the logits of a group, 1000 a student."""
    taken = {"local_training": 1.0, "aggregation": 10.0, "logits": 100.0, "distillation": 1000.0}
    for job in jobs_of(recipe, rounds):
        write(root, job.stage, [job.file], taken[job.stage])


def test_clients_train_and_the_server_does_the_rest_of_a_round(tmp_path):
    recipe = Recipe.model_validate(ROUNDS)
    of_rounds(tmp_path, recipe, 2)
    assert seconds_of(tmp_path, [part(recipe, 2)]) == Seconds(clients=4.0, server=2220.0)


def test_clients_compute_the_logits_that_they_send(tmp_path):
    """As in DS-FL: they digest the mean of what they said in the round before."""
    digesting = {"local": "digest", "global": "designated", "server_model": True}
    said = {"public": "held_out", "distillation": {"entropy_reduction": {"temperature": 0.1}}}
    groups = {"global_models": 2, "client_groups": "drawn"}
    recipe = Recipe.model_validate(ROUNDS | digesting | said | groups)
    of_rounds(tmp_path, recipe, 1)
    assert seconds_of(tmp_path, [part(recipe, 1)]) == Seconds(clients=102.0, server=1010.0)


def test_discriminators_are_trained_by_clients_against_the_servers_generator(tmp_path):
    recipe = Recipe.model_validate(ROUNDS | {"ensemble": "odds"})
    of_rounds(tmp_path, recipe, 1)
    generator, (odds,) = discriminators.public_generator(recipe), discriminators.odds_files(recipe)
    write(tmp_path, "public_generator", [generator], 5000.0)
    for client in range(recipe.clients):
        made = discriminators.client_discriminator(recipe, client)
        read = flat(discriminators.client_discriminator.job(recipe, 0).inputs)
        write(tmp_path, "client_discriminator", [made], 20.0 * 2.0**client, read)
    write(tmp_path, "client_odds", [odds], 0.5, flat(discriminators.client_odds.job(recipe).inputs))
    found = seconds_of(tmp_path, [part(recipe, 1)])
    assert found == Seconds(clients=2.0 + 140.0, server=1110.0 + 5000.5)


def test_a_run_that_continues_another_costs_both(tmp_path):
    recipe, before = Recipe.model_validate(ROUNDS), Recipe.model_validate(ROUNDS | {"seed": 1})
    of_rounds(tmp_path, recipe, 1)
    of_rounds(tmp_path, before, 1)
    both = seconds_of(tmp_path, [part(before, 1), part(recipe, 1)])
    assert both == Seconds(clients=4.0, server=2220.0)
