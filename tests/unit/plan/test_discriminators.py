"""Which settings reach clients' discriminators and their odds, and who reads these."""

from fedstage.plan import discriminators
from fedstage.plan.training import aggregation, global_model, teacher_logits
from fedstage.settings.recipes import Recipe

BASE = {
    "data": {"digits": {"held_out": 50, "server_validation": 20}},
    "clients": 4,
    "participants": 2,
    "partition": {"dirichlet": {"alpha": 0.1}},
    "model": "cnn_small",
    "client": {"epochs": 2, "batch_size": 16, "learning_rate": 0.05},
    "ensemble": {"odds": {"average": "probabilities"}},
    "global": "basic",
    "server": {"steps": 3, "batch_size": 8, "learning_rate": 0.1},
    "seed": 0,
}
#: Another value of each setting that reaches them, and of others that do not.
REACH = [
    ("data", {"digits": {"held_out": 60}}, True),
    ("clients", 5, True),
    ("partition", "iid", True),
    ("validation", 0.1, True),
    ("core", {}, True),
    ("public", "cifar10", True),
    ("seed", 1, True),
    ("numerics", {"precision": "bf16"}, True),
    ("ensemble", {"odds": {"generator": {"steps": 5}}}, True),
    ("ensemble", {"odds": {"discriminator": {"epochs": 5}}}, True),
    ("ensemble", "odds", False),  # of logits
    ("numerics", {"logits": "fp16"}, False),
    ("participants", 3, False),
    ("model", "resnet8", False),
    ("global_models", 2, False),
    ("local", "scaffold", False),
    ("client", {"epochs": 1, "batch_size": 4, "learning_rate": 0.1}, False),
    ("aggregation", {"weights": "uniform"}, False),
    ("server", {"steps": 4, "batch_size": 9, "learning_rate": 0.2, "temperature": 2.0}, False),
    ("global", {"basic": {"warm_up": 1}}, False),
    ("distillation", "l1", False),
    ("staleness", {"cyclic": {"delays": [0, 1]}}, False),
    ("compression", {"stc": {"downstream": False}}, False),
]


def recipe(**changes):
    return Recipe.model_validate(BASE | changes)


def test_discriminators_depend_on_what_they_are_trained_on_only():
    for field, value, reaches in REACH:
        folders = {
            discriminators.client_odds(each) for each in (recipe(), recipe(**{field: value}))
        }
        assert (len(folders) == 2) == reaches, (field, value)


def test_only_the_last_step_of_a_round_reads_odds():
    weighted, plain = recipe(), recipe(ensemble="clients")
    odds = discriminators.odds_files(weighted)
    assert len(odds) == 1
    for round_ in (1, 2):
        one, other = (global_model(config, round_, 0).job.inputs for config in (weighted, plain))
        assert (one["odds"], other["odds"]) == (odds[0], [])
    assert teacher_logits(weighted, 1) == teacher_logits(plain, 1)
    assert aggregation(weighted, 1, 0) == aggregation(plain, 1, 0)
    assert discriminators.odds_files(plain) == []
    assert discriminators.odds_files(recipe(**{"global": None})) == []


def test_clients_wait_for_the_generator_and_the_odds_for_all_clients():
    of_generator = discriminators.public_generator.job(recipe()).inputs
    assert {key for key in of_generator if of_generator[key]} == {"recipe", "info", "public"}
    generator = discriminators.public_generator(recipe())
    assert discriminators.client_discriminator.job(recipe(), 0).inputs["generator"] == generator
    odds = discriminators.client_odds.job(recipe()).inputs
    names = [path.rpartition("/")[2] for path in odds["discriminators"]]
    assert names == [f"client_{client}.safetensors" for client in range(4)]
    assert odds["public"] == of_generator["public"]
