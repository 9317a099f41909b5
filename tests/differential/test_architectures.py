"""Groups of different architectures (FedEED, A.5): one teacher, a student of each architecture."""

import json
from pathlib import Path

import pytest
import torch
from tests.shared.graph import teaching_logits
from tests.shared.stages import (
    dataset,
    initial_model,
    logits_segment,
    participation,
    partition,
    segment,
)
from tests.shared.stages import recipe as write_recipe

from fedstage.algorithm.global_trainers.distillation import distillation_loss
from fedstage.models.loading import build
from fedstage.plan import data_files
from fedstage.plan.training import aggregated_model, aggregation, global_model
from fedstage.plan.training_folder import public_file, training_folder
from fedstage.protocol.digests import as_json, canonical
from fedstage.protocol.rounds import is_distilled
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
        parts = ("train", "test", "held_out", "info")
        files = {part: Path(data_files.data_file(recipe.data, part)) for part in parts}
        dataset(settings=as_json(canonical(recipe.data)), **files)
        partition(
            settings=canonical(json.dumps(data_files.clients_table(recipe).job.config)),
            train=files["train"],
            output=Path(data_files.clients_table(recipe)),
            histogram=Path(data_files.label_histogram(recipe)),
        )  # fmt: skip
        participation(
            clients=5, participants=4, seed=2, first=1, last=100,
            output=Path(data_files.participation_table(recipe, 1)),
        )  # fmt: skip
        for group, model in enumerate(recipe.architectures):
            settings = as_json({"model": canonical(model), "seed": 2})
            output = Path(global_model(recipe, 0, group))
            initial_model(settings=settings, group=group, info=files["info"], output=output)
        for round_ in range(1, rounds + 1):
            run_round(recipe, round_)
        return recipe

    return run


def run_round(recipe, round_):
    """Train groups that other recipes own in segments of theirs, and then the students."""
    groups = range(recipe.global_models)
    students = [group for group in groups if is_distilled(recipe, round_, group)]
    others = [group for group in groups if aggregation.job(recipe, round_, group).config != recipe]
    for group in others:
        segment(
            recipe=written(aggregation.job(recipe, round_, group).config),
            first=round_,
            last=round_,
            groups=[group],
        )
        for members, images in teaching_logits(recipe) if students else ():
            logits_segment(
                recipe=written(recipe), rounds=[round_], group=group, members=members, images=images
            )
    own = [group for group in groups if group in students or group not in others]
    segment(recipe=written(recipe), first=round_, last=round_, groups=own)


def written(recipe):
    """Return the file of a recipe's settings, once it is written."""
    path = Path(f"{training_folder(recipe)}/recipe.yaml")
    if not path.exists():
        write_recipe(settings=as_json(canonical(recipe)), output=path)
    return path


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
