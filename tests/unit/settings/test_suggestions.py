import pytest

from fedstage.errors import FedstageError
from fedstage.settings.experiments import Experiment
from fedstage.settings.recipes import Recipe
from fedstage.settings.validation import suggest, validate

RECIPE = {
    "data": "digits",
    "clients": 4,
    "partition": {"dirichlet": {"alpha": 0.1}},
    "participants": 2,
    "model": "cnn_small",
    "client": {"epochs": 1, "batch_size": 16, "learning_rate": 0.05},
    "seed": 0,
}
EXPERIMENT = {"title": "e", "scales": {"default": {}}}


@pytest.mark.parametrize(
    ("settings", "changes", "meant"),
    [
        (Recipe, {"cleint": {}}, "client"),
        (Recipe, {"globl": "basic"}, "global"),  # a key by its alias
        (Recipe, {"client": RECIPE["client"] | {"batchsize": 3}}, "batch_size"),
        (
            Recipe,
            {"client": RECIPE["client"] | {"schedule": {"step": {"milestone": [0.5]}}}},
            "milestones",
        ),
        (Recipe, {"partition": {"dirichlet": {"alfa": 0.1, "alpha": 1.0}}}, "alpha"),
        (Recipe, {"architectures": [{"cnn_small": {"widht": 3}}]}, "width"),
        (Recipe, {"model": "cnn_smal"}, "cnn_small"),
        (Recipe, {"data": "cifar-10"}, "cifar10"),
        (Recipe, {"partition": "dirichlett"}, "dirichlet"),
        (Recipe, {"local": "fedproxx"}, "fedprox"),
        (Recipe, {"on_divergence": "dropp"}, "drop"),
        (Experiment, {"tabel": {}}, "table"),
        (Experiment, {"table": {"row": []}}, "rows"),
        (Experiment, {"scales": {"mini": {"bas": {}}}}, "base"),
        (Experiment, {"results": ["tables"]}, "table"),
    ],
)
def test_a_misspelled_name_is_told_with_the_right_one(settings, changes, meant):
    good = RECIPE if settings is Recipe else EXPERIMENT
    with pytest.raises(FedstageError) as caught:
        validate(settings, good | changes, "here")
    lines = str(caught.value).splitlines()
    assert any(line.endswith(f"; did you mean {meant!r}?") for line in lines), lines


def test_case_does_not_count_and_nothing_is_suggested_where_nothing_is_near():
    assert suggest("lokal_epochen", ["model", "rounds"]) == ""
    assert suggest("FedAvg", ["fedavg", "scaffold"]) == "; did you mean 'fedavg'?"
