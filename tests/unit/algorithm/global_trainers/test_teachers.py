"""Members of an ensemble as models: what they say of the images that a student sees."""

import pytest
import torch
from tests.shared.settings import federated

from fedstage.algorithm.ensemble_trainers import Members
from fedstage.algorithm.global_trainers.distillation import distillation_loss
from fedstage.algorithm.global_trainers.student import Taught, teach
from fedstage.algorithm.global_trainers.students import lesson, live_targets
from fedstage.algorithm.global_trainers.teachers import Teacher, read_teachers
from fedstage.algorithm.global_trainers.transfers import transfer
from fedstage.models.initialisation import initialise
from fedstage.models.loading import new_model, state_of
from fedstage.protocol.groups import model_of
from fedstage.randomness import torch_generator
from fedstage.settings.recipes import Recipe
from fedstage.storage.tensors import save_tensors
from fedstage.training.images import augment, draw, normalise
from fedstage.training.passes import compute_logits

INFO = {"shape": [1, 8, 8], "classes": 3, "mean": [0.5], "std": [0.25]}
SMALL = {"cnn_small": {"width": 2, "hidden": 6, "norm": "batch"}}
COUNT = 130  # more than a batch of inference


def a_recipe(server=(), **changes):
    raw = federated(
        clients=8,
        participants=5,
        model=SMALL,
        global_models=2,
        ensemble="clients",
        server={
            "epochs": 2,
            "batch_size": 16,
            "learning_rate": 0.1,
            "augmentation": "crop_flip",
            "teacher_images": "augmented",
            **dict(server),
        },
        numerics={"device": "cpu"},
        **{"global": "basic"},
    )
    return Recipe.model_validate(raw | changes)


def a_model(recipe, number, group=0):
    model = new_model(model_of(recipe, group), INFO, torch.device("cpu"))
    initialise(model, torch_generator(number, "weights"))
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.fill_(0.1 * number)
    return model.eval().requires_grad_(False)


def images(count=COUNT):
    drawn = torch.randint(0, 256, (count, 1, 8, 8), generator=torch_generator("images"))
    return drawn.to(torch.uint8)


#: Round, group and samples of members that are out of order.
PLACES = [(2, 1, 7), (1, 1, 30), (2, 0, 5), (2, 0, 9), (1, 0, 20)]


def told(recipe):
    """Return the teachers of a recipe, and their logits as files have them."""
    kind = recipe.ensemble.members[0]
    teachers, cached = [], []
    for number, (round_, group, samples) in enumerate(PLACES):
        model = a_model(recipe, number, group)
        teachers.append(Teacher(round_, group, samples, model))
        logits = compute_logits(model, images(), INFO)
        cached.append(Members(round_, group, logits[None], (samples,), kind))
    return teachers, cached


@pytest.mark.parametrize("distillation", ["kl", "l1", "entropy_reduction"])
def test_a_student_that_asks_about_plain_images_learns_what_was_cached(distillation):
    recipe = a_recipe(
        {"augmentation": "none", "teacher_images": "original"}, distillation=distillation
    )
    teachers, cached = told(recipe)
    from_files = lesson(recipe, cached, images(), 2)
    # What `teacher_images` = augmented does, which is refused where nothing is augmented.
    asked = Taught(images(), None, live=live_targets(recipe, teachers))
    server = recipe.server.model_copy(update={"teacher_images": "augmented"})
    loss = transfer(recipe.distillation).loss(recipe.distillation, server)
    learnt = [
        teach(
            a_model(recipe, 9).requires_grad_(True), one, loss, settings, recipe.numerics, INFO,
            ("key",), "a student",
        )[0]
        for one, settings in ((from_files, recipe.server), (asked, server))
    ]  # fmt: skip
    for name, value in learnt[0].items():
        torch.testing.assert_close(learnt[1][name], value, rtol=0, atol=1e-5)


def test_teachers_see_the_images_that_the_student_sees():
    recipe = a_recipe()
    teachers, _ = told(recipe)
    ask, seen = live_targets(recipe, teachers), []

    def watched(pixels):
        seen.append(pixels)
        return ask(pixels)

    key = ("key",)
    whole = Taught(images(), None, live=watched)
    teach(
        a_model(recipe, 9).requires_grad_(True), whole, distillation_loss(recipe.server),
        recipe.server,
        recipe.numerics, INFO, key, "a student",
    )  # fmt: skip
    batch = torch.randperm(COUNT, generator=torch_generator(*key, "batches"))[:16]
    drawn = draw("crop_flip", 16, torch_generator(*key, "augmentation"))
    first = normalise(augment(images()[batch], drawn), INFO)
    assert torch.equal(seen[0], first)
    assert len(seen) == 2 * (COUNT // 16)


# --- files ----------------------------------------------------------------------------------------


def update(folder, participant, weights, **notes):
    path = folder / f"participant_{participant}.safetensors"
    metadata = {
        "round": 1,
        "group": 0,
        "participant": participant,
        "client": participant,
        "samples": 5 + participant,
    }
    save_tensors(
        path, {f"model/{name}": value for name, value in weights.items()}, metadata | notes
    )
    return path


def test_updates_are_read_as_members_without_those_that_diverged_or_are_empty(tmp_path):
    recipe = a_recipe()
    models = [a_model(recipe, number) for number in range(4)]
    paths = [
        update(tmp_path, participant, state_of(model))
        for participant, model in enumerate(models[:2])
    ]
    paths.append(update(tmp_path, 2, {}, diverged_at=3))
    paths.append(update(tmp_path, 3, {}, client=None))
    found = read_teachers(recipe, paths, INFO, torch.device("cpu"))
    assert [one.samples for one in found] == [5, 6]
    for one, model in zip(found, models, strict=False):
        assert not one.model.training
        assert not any(weight.requires_grad for weight in one.model.parameters())
        for name, value in model.state_dict().items():
            assert torch.equal(one.model.state_dict()[name], value)


def test_averages_are_members_also_where_nobody_answered(tmp_path):
    """As their logits are: a group whose participants all diverged keeps its model."""
    recipe = a_recipe(ensemble="aggregated")
    paths = []
    for group, samples in ((0, 0), (1, 8)):
        paths.append(tmp_path / f"{group}.safetensors")
        notes = {"round": 3, "group": group, "samples": samples}
        save_tensors(paths[-1], state_of(a_model(recipe, group)), notes)
    found = read_teachers(recipe, paths, INFO, torch.device("cpu"))
    assert [(one.round, one.group, one.samples) for one in found] == [(3, 0, 0), (3, 1, 8)]
