"""Which settings reach clients' discriminators and their odds, and who reads these."""

from tests.shared import recipes
from tests.shared.settings import SERVER

from fedstage.plan import training_folder

ODDS = {"ensemble": {"odds": {"average": "probabilities"}}, "global": "basic"}
#: Other values of settings that reach them, and of settings that do not.
REACHES = [
    {"data": {"digits": {"held_out": 60}}}, {"clients": 5}, {"partition": "iid"}, {"core": {}},
    {"validation": 0.1}, {"public": {"digits": {"split_seed": 4}}}, {"seed": 1},
    {"numerics": {"precision": "bf16"}},
    {"ensemble": {"odds": {"generator": {"steps": 5}}}},
    {"ensemble": {"odds": {"discriminator": {"epochs": 5}}}},
]  # fmt: skip
REACHES_NOT = [
    {"ensemble": "odds"},  # of logits
    {"participants": 3}, {"model": "resnet8"},
    {"global_models": 2}, {"local": "scaffold"}, {"aggregation": {"weights": "uniform"}},
    {"client": {"epochs": 3, "batch_size": 4, "learning_rate": 0.1}},
    {"server": SERVER | {"batch_size": 9, "temperature": 2.0}}, {"distillation": "l1"},
    {"global": {"basic": {"warm_up": 1}}}, {"staleness": {"cyclic": {"delays": [0, 1]}}},
]  # fmt: skip


def recipe(**changes):
    return recipes.recipe(**ODDS | {"clients": 4} | changes)


def test_discriminators_depend_on_what_they_are_trained_on_only():
    for cases, reaches in ((REACHES, True), (REACHES_NOT, False)):
        for changes in cases:
            found = training_folder.client_odds(recipe(**changes))
            assert (found != training_folder.client_odds(recipe())) == reaches, changes


def test_clients_wait_for_the_generator_and_the_odds_for_all_clients():
    of_generator = training_folder.public_generator.job(recipe()).inputs
    assert {key for key in of_generator if of_generator[key]} == {"recipe", "info", "public"}
    generator = training_folder.public_generator(recipe())
    assert training_folder.client_discriminator.job(recipe(), 0).inputs["generator"] == generator
    odds = training_folder.client_odds.job(recipe()).inputs
    names = [path.rpartition("/")[2] for path in odds["discriminators"]]
    assert names == [f"client_{client}.safetensors" for client in range(4)]
    assert odds["public"] == of_generator["public"]
