"""Groups of different architectures (FedEED, A.5): one teacher, a student of each architecture."""

import pytest
import torch
from tests.shared.stages import make_all

from fedstage.algorithm.global_trainers.distillation import distillation_loss
from fedstage.models.loading import build
from fedstage.plan import data_files
from fedstage.plan.training import aggregated_model, global_model
from fedstage.plan.training_folder import public_file
from fedstage.randomness import torch_generator
from fedstage.settings.recipes import Recipe
from fedstage.storage.files import load_json
from fedstage.storage.tensors import load_tensors
from fedstage.training.batches import public_batches
from fedstage.training.loop import train

CNN = {"cnn_small": {"width": 2, "hidden": 6, "norm": "batch"}}
BASE = {
    "data": {"digits": {"test": 1400, "held_out": 50}},
    "clients": 5,
    "partition": "iid",
    "participants": 4,
    "model": "logistic_regression",
    "global_models": 3,
    "architectures": ["logistic_regression", CNN, CNN],
    "client": {"epochs": 1, "batch_size": 16, "learning_rate": 0.1},
    "ensemble": {"aggregated": {"checkpoints": 2}},
    "global": {"designated": {"main": "per_architecture"}},
    "server": {"steps": 5, "batch_size": 20, "learning_rate": 0.05},
    "numerics": {"device": "cpu"},
    "seed": 2,
}


@pytest.fixture
def start(tmp_path, monkeypatch):
    """A function that makes what the rounds of a recipe start from, and runs them."""
    monkeypatch.chdir(tmp_path)

    def run(rounds, **changes):
        recipe = Recipe.model_validate(BASE | changes)
        groups = range(recipe.global_models)
        make_all(*(global_model(recipe, rounds, group) for group in groups))
        make_all(*(aggregated_model(recipe, rounds, group) for group in groups))
        return recipe

    return run


def model_in(recipe, group, path):
    info = load_json(data_files.data_file(recipe.data, "info"))
    model = build(recipe.architectures[group], tuple(info["shape"]), info["classes"])
    tensors, _ = load_tensors(path)
    model.load_state_dict(tensors)
    return model, info


def public(recipe):
    return load_tensors(public_file(recipe))[0]["images"]


def by_hand(recipe, round_, group):
    """Teach a student with the average of all architectures' logits."""
    said, info = [], None
    for past in range(max(1, round_ - 1), round_ + 1):
        for other in range(recipe.global_models):
            model, info = model_in(recipe, other, aggregated_model(recipe, past, other))
            pixels = (public(recipe).float() / 255 - info["mean"][0]) / info["std"][0]
            with torch.no_grad():
                said.append(model.eval()(pixels).double())
    teacher = (sum(said) / len(said)).float()
    student, _ = model_in(recipe, group, aggregated_model(recipe, round_, group))
    key = (recipe.seed, "distillation", round_, group)
    batches = public_batches(50, 20, 5, torch_generator(*key, "batches"))
    generator, loss = torch_generator(*key, "augmentation"), distillation_loss(recipe.server)
    train(student, public(recipe), teacher, batches, recipe.server, loss, info, generator)
    return student.state_dict()


def test_a_student_of_each_architecture_learns_from_all(start):
    recipe = start(2)
    for round_ in (1, 2):
        for group in (0, 1):
            ours, _ = load_tensors(global_model(recipe, round_, group))
            expected = by_hand(recipe, round_, group)
            assert ours.keys() == expected.keys()
            for name, value in expected.items():
                assert torch.allclose(ours[name].double(), value.double(), atol=1e-5), name
        assert global_model(recipe, round_, 2) == aggregated_model(recipe, round_, 2)
    shapes = [len(load_tensors(global_model(recipe, 2, group))[0]) for group in (0, 1, 2)]
    assert shapes[0] < shapes[1] == shapes[2]


@pytest.mark.parametrize(
    "changes",
    [
        {"ensemble": {"bayesian": {"samples": 2, "variant": "as_released"}}},
        {"ensemble": "clients", "global": "basic", "local": "scaffold"},
        {"aggregation": {"batch_norm": "local"}},
        {"aggregation": {"batch_norm": "re_estimate"}},
    ],
    ids=str,
)
def test_other_parts_of_methods_take_architectures_too(start, changes):
    recipe = start(2, **changes)
    for group in range(3):
        model, _ = model_in(recipe, group, global_model(recipe, 2, group))
        assert all(bool(value.isfinite().all()) for value in model.state_dict().values())
