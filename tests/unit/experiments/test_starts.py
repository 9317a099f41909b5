"""What a run starts from, and which recipes may follow one another."""

import pytest
from tests.shared import settings

from fedstage.errors import FedstageError
from fedstage.experiments.starts import check_start, ended_in, named_start
from fedstage.plan import one_shot as shot
from fedstage.plan.one_shot_sharing import alone
from fedstage.plan.training import global_model
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.settings.recipes import Recipe

TAUGHT = {"distillation": "l1", "server": {"steps": 3, "batch_size": 8, "learning_rate": 0.1}}


def federated(**changes):
    return Recipe.model_validate(settings.federated(**changes))


def one_shot(**changes):
    return OneShotRecipe.model_validate(settings.one_shot(**TAUGHT | changes))


def test_a_start_is_a_method_or_one_with_changes():
    assert named_start("e", "fedkd") == ("fedkd", {})
    changed = {"method": "fedavg", "rounds": 3, "client": {"epochs": 2}}
    assert named_start("e", changed) == ("fedavg", {"rounds": 3, "client": {"epochs": 2}})


def test_federated_recipes_end_in_their_main_model_and_one_shot_recipes_in_a_student():
    distilled = federated(ensemble="clients", server=TAUGHT["server"], **{"global": "basic"})
    assert ended_in("e", distilled, 3) == global_model(distilled, 3, 0)
    assert ended_in("e", distilled, 3).endswith("round_0003/group_0/distilled.safetensors")
    assert ended_in("e", one_shot(), 1) == shot.student_file(one_shot())


@pytest.mark.parametrize(
    "recipe",
    [one_shot(distillation=None), alone(federated(), 3, pooled=True)],
    ids=["many", "none"],
)
def test_what_ends_in_several_models_or_was_not_federated_is_no_start(recipe):
    with pytest.raises(FedstageError, match="must be federated, core, or one_shot with"):
        ended_in("e", recipe, 1)


@pytest.mark.parametrize(
    ("recipe", "before", "told"),
    [
        (federated(), one_shot(clients=5), "clients = 5: must be that of the run, 4"),
        (federated(), one_shot(seed=1), "seed = 1"),
        (federated(), one_shot(validation=0.1), "validation = 0.1"),
        (federated(), one_shot(student="resnet8"), "model = 'resnet8': must be the run's"),
        (
            federated(global_models=2, architectures=["cnn_small", "resnet8"]),
            one_shot(),
            "model = 'cnn_small': must be the run's, 'resnet8'",
        ),
        (one_shot(architectures=["cnn_small", "resnet8"]), federated(), "the run's, 'resnet8'"),
        (one_shot(initialisation="own"), federated(), "initialisation = 'own'"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_does_not_fit_is_refused(recipe, before, told):
    with pytest.raises(FedstageError) as caught:
        check_start("e", recipe, before)
    assert told in str(caught.value)
