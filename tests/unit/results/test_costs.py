"""Seconds of clients and of the server, from records as jobs write them."""

import pytest
from measured import rows_of
from tests.shared.records import write_record
from tests.shared.settings import SERVER, one_shot

from fedstage.experiments.runs_file import Part
from fedstage.plan import one_shot as shot
from fedstage.plan import unfederated
from fedstage.plan.one_shot_sharing import local_recipe
from fedstage.results.costs import Seconds, seconds_of, shown_costs
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.settings.recipes import LocalRecipe, Recipe
from fedstage.settings.runs import RunLength

LOCAL = one_shot() | {"data": {"digits": {"held_out": 100}}, "clients": 3}
BASE = LOCAL | {"server": SERVER}
TAUGHT = BASE | {"public": "held_out", "aggregator": "averaging", "distillation": "kl"}
MLP = {"aggregator_fraction": 0.1, "aggregator": "mlp"}
TRAINED = {
    "federated": {"federated": {"rounds": 5}},
}


def flat(files):
    return [
        one for value in files.values() for one in ([value] if isinstance(value, str) else value)
    ]


def of_models(root, recipe):
    """Records of the clients' models: 1, 2 and 4 seconds."""
    local = local_recipe(recipe)
    for client, model in enumerate(unfederated.local_models(local)):
        write_record(root, "local_model", [model], 2.0**client, flat(model.job.inputs))


def of_logits(root, recipe, images, seconds):
    local = local_recipe(recipe)
    for client in range(recipe.clients):
        path = unfederated.client_logits(local, f"client_{client}", images)
        read = flat(path.job.inputs)
        write_record(root, "client_logits", [path], seconds, read, options={"images": images})


def of_aggregator(root, recipe, seconds):
    made = shot.aggregator(recipe)
    write_record(root, "aggregator", [made], seconds, flat(shot.aggregator.job(recipe).inputs))


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
    write_record(
        tmp_path, "distilled_model", [made], 100.0, flat(shot.distilled_model.job(recipe).inputs)
    )
    assert seconds_of(tmp_path, [part(recipe)]) == Seconds(clients=7.0, server=130.5)


def test_moments_are_measured_by_clients_and_the_head_is_the_servers(tmp_path):
    recipe = OneShotRecipe.model_validate(
        BASE | {"model": "resnet8", "distillation": "closed_form"}
    )
    for client in range(recipe.clients):
        job = shot.feature_moments.job(recipe, client)
        write_record(
            tmp_path, "feature_moments", [*job.files.values()], 2.0**client, flat(job.inputs)
        )
    job = shot.closed_form_model.job(recipe)
    write_record(tmp_path, "closed_form_model", [*job.files.values()], 0.5, flat(job.inputs))
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
    write_record(tmp_path, "aggregator", files, 99.0, read, made="2025")
    write_record(tmp_path, "aggregator", files, 3.0, read, made="2026")
    assert seconds_of(tmp_path, [part(recipe)]) == Seconds(clients=7.0, server=3.0)


# --- costs table ----------------------------------------------------------------------------------


SCORES = {("a", 0.1): [50.0, 60.0, 70.0], ("b", 0.1): [53.0, 62.0, 74.0], ("b", 1.0): [80.0, 81.0]}


def run(method, alpha, seed, score, **changes):
    settings = {"method": method, "partition.alpha": alpha, "seed": seed}
    known = {"bytes": 2e6, "clients_s": 1.5, "server_s": 40.0, "memory_bytes": 3 * 2.0**20}
    return settings | {"score": score} | known | changes


@pytest.fixture
def runs():
    return [
        run(method, alpha, seed, score)
        for (method, alpha), scores in SCORES.items()
        for seed, score in enumerate(scores)
    ]


def shown(runs):
    return rows_of(shown_costs(runs, ["method"], ["partition.alpha"], "top1_accuracy"))


def test_each_is_compared_with_the_first_of_its_column_by_seed(runs):
    first, second, alone = shown(runs)
    assert first["Beside the first"] == alone["Beside the first"] == "–"
    # Differences 3, 2 and 4: mean 3, deviation 1, t of 2 degrees of freedom 4.303.
    assert second["Beside the first"] == "+3.00 [+0.52, +5.48]"
    assert second["Top-1 accuracy (%)"] == "63.00 ± 10.54"


def test_costs_are_means_over_seeds():
    runs = [
        run("a", 1, 0, 1.0, bytes=1e6, clients_s=9.0, server_s=150.0, memory_bytes=2**19),
        run("a", 1, 1, 1.0, bytes=2e6, clients_s=10.5, server_s=151.0, memory_bytes=2**20),
    ]
    (row,) = shown(runs)
    assert [row[name] for name in ("Bytes", "Clients (s)", "Server (s)", "Memory (MiB)")] == [
        "1.5 MB", "9.75", "150", "0.75",
    ]  # fmt: skip


def test_a_guarantee_stands_next_to_accuracy_where_any_run_has_one(runs):
    assert "ε" not in shown(runs)[0]
    private = [run("p", 0.1, seed, 61.0, epsilon=2.1 + seed, delta=1e-5) for seed in (0, 1)]
    single = run("s", 0.1, 0, 61.0, epsilon=None, example_epsilon=4.0, delta=1e-4)
    endless = run("q", 0.1, 0, 61.0, epsilon=float("inf"), delta=1e-3)
    table = shown([*runs, *private, endless, single])
    assert [row["ε"] for row in table if row["partition.alpha"] == "0.1"] == [
        "–", "–", "3.10 (δ = 1e-05)", "∞ (δ = 0.001)",
        "4.00 a sample (δ = 0.0001)",
    ]  # fmt: skip
    assert list(table[0])[2:5] == ["Top-1 accuracy (%)", "Beside the first", "ε"]
