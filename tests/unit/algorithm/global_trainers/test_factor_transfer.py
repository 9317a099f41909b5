"""Factor transfer against its definition (Kim, Park and Kwak 2018)."""

import copy

import pytest
import torch
from tests.shared.settings import federated
from torch.nn.functional import conv2d, conv_transpose2d, leaky_relu

from fedstage.algorithm.global_trainers.distillation import distillation_loss
from fedstage.algorithm.global_trainers.factor_transfer import (
    Paraphraser,
    Translated,
    draw_weights,
    encoder,
    factor_distance,
    factor_term,
    reconstruction_loss,
    train_paraphraser,
)
from fedstage.algorithm.global_trainers.objective import Seen
from fedstage.algorithm.global_trainers.student import Taught, teach
from fedstage.algorithm.global_trainers.teachers import Teacher
from fedstage.errors import FedstageError
from fedstage.models.heads import with_maps
from fedstage.models.initialisation import initialise
from fedstage.models.loading import new_model, state_of
from fedstage.randomness import torch_generator
from fedstage.settings.recipes import Recipe
from fedstage.settings.server import FactorTransfer, Server
from fedstage.training.images import normalise
from fedstage.training.passes import PLAIN

INFO = {"shape": [3, 16, 16], "classes": 4, "mean": [0.5] * 3, "std": [0.25] * 3}
COUNT = 20
MODELS = {
    "resnet8": {"norm": "batch"},
    "wrn16_2": {"norm": "group"},
    "resnet8_wide": {"width": 4},
}


def a_model(number=0, name="resnet8", **more):
    raw = federated(data="cifar10", clients=2, model={name: MODELS[name] | more})
    model = new_model(Recipe.model_validate(raw).model, INFO, torch.device("cpu"))
    initialise(model, torch_generator(number, "weights"))
    return model


def teachers(*models):
    frozen = [model.eval().requires_grad_(False) for model in models]
    return [Teacher(1, group, 5, model) for group, model in enumerate(frozen)]


def images():
    drawn = torch.randint(0, 256, (COUNT, 3, 16, 16), generator=torch_generator("images"))
    return drawn.to(torch.uint8)


def server(factor=(), **changes):
    raw = {"steps": 4, "batch_size": 8, "learning_rate": 0.05}
    chosen = {"weight": 100.0, "epochs": 2, "learning_rate": 0.05} | dict(factor)
    return Server.model_validate(raw | {"factor_transfer": chosen} | changes)


def weighted(layers, seed=0):
    draw_weights(layers, torch_generator(seed, "layers"))
    for layer in layers.modules():
        if getattr(layer, "bias", None) is not None:
            layer.bias.data.fill_(0.02)
    return layers


# --- the paraphraser and factors ------------------------------------------------------------------


def test_a_paraphraser_is_three_convolutions_and_their_mirror():
    whole = weighted(Paraphraser(6, 3))
    maps = torch.randn(2, 6, 5, 5, generator=torch_generator("maps"))
    state, seen = whole.state_dict(), maps
    shapes = []
    for part, function in (("encoder", conv2d), ("decoder", conv_transpose2d)):
        for n in (0, 2, 4):
            weight = state[f"{part}.{n}.weight"]
            shapes.append(tuple(weight.shape[:2]))
            assert weight.shape[2:] == (3, 3)
            seen = leaky_relu(function(seen, weight, state[f"{part}.{n}.bias"], padding=1), 0.1)
    # Of a transposed convolution the channels that come in are first.
    assert shapes == [(6, 6), (3, 6), (3, 3), (3, 3), (3, 6), (6, 6)]
    assert len(state) == 12
    torch.testing.assert_close(whole.decoder(whole.encoder(maps)), seen)
    expected = (seen - maps).abs().mean()
    torch.testing.assert_close(reconstruction_loss(whole, maps, PLAIN), expected)
    with torch.no_grad():
        torch.testing.assert_close(encoder(6, 3)(maps).shape, whole.encoder(maps).shape)


def test_the_distance_is_that_by_hand_within_its_range_and_blind_to_length():
    drawn = torch_generator("factors")
    one, other = (torch.randn(5, 3, 4, 4, generator=drawn) for _ in range(2))
    by_sample = [
        (a / a.pow(2).sum().sqrt() - b / b.pow(2).sum().sqrt()).abs().mean()
        for a, b in zip(one, other, strict=True)
    ]
    found = factor_distance(one, other)
    torch.testing.assert_close(found, torch.stack(by_sample).mean())
    size = 3 * 4 * 4
    assert 0 < float(found) <= 2 * size**0.5 / size
    assert float(factor_distance(one, one)) == 0
    torch.testing.assert_close(factor_distance(7.5 * one, other), found)
    # The largest there is: all numbers equal, of opposite signs.
    largest = factor_distance(torch.ones(1, 3, 4, 4), -torch.ones(1, 3, 4, 4))
    assert float(largest) == pytest.approx(2 * size**0.5 / size)


def test_the_term_is_the_mean_over_teachers_and_has_a_gradient_of_the_student_alone():
    asked = teachers(a_model(1), a_model(2))
    paraphraser = weighted(Paraphraser(64, 32))
    student = Translated(a_model(3).eval(), weighted(encoder(64, 32), 1))
    pixels = normalise(images(), INFO)
    logits, made = student(pixels)
    term = factor_term(paraphraser, asked, FactorTransfer(weight=50.0), PLAIN)
    value = term(Seen(torch.arange(COUNT), pixels, logits, made))
    expected = sum(
        factor_distance(made, paraphraser.encoder(with_maps(one.model, pixels)[0])) for one in asked
    )
    torch.testing.assert_close(value, 25 * expected)
    value.backward()
    assert all(weight.grad is None for weight in paraphraser.parameters())
    assert all(weight.grad is None for one in asked for weight in one.model.parameters())
    assert all(weight.grad is not None for weight in student.translator.parameters())
    assert student.student.conv.weight.grad.abs().sum() > 0
    assert student.student.linear.weight.grad is None  # it is behind the maps


def test_the_paraphraser_learns_to_reconstruct_and_depends_on_its_key():
    asked = teachers(a_model(1))
    pixels = normalise(images(), INFO)
    maps = with_maps(asked[0].model, pixels)[0]

    def trained(epochs, key="key"):
        paraphraser = weighted(Paraphraser(64, 32))
        chosen = server({"epochs": epochs})
        train_paraphraser(paraphraser, asked, images(), chosen, INFO, (key,), "x", PLAIN)
        return paraphraser.requires_grad_(False)

    losses = [float(reconstruction_loss(trained(epochs), maps, PLAIN)) for epochs in (1, 30)]
    assert losses[1] < 0.8 * losses[0]
    one, same, other = trained(1), trained(1), trained(1, "another")
    assert torch.equal(one.encoder[0].weight, same.encoder[0].weight)
    assert not torch.equal(one.encoder[0].weight, other.encoder[0].weight)


# --- students -------------------------------------------------------------------------------------


def taught(chosen, asked=()):
    targets = torch.randn(COUNT, 4, generator=torch_generator("teacher"))
    weights, _ = teach(
        a_model(3), Taught(images(), targets), distillation_loss(chosen), chosen, PLAIN, INFO,
        ("key",), "student of round 2", teachers=asked,
    )  # fmt: skip
    return weights


def test_a_student_learns_factors_and_is_kept_without_its_translator():
    before = copy.deepcopy(state_of(a_model(1)))
    asked = teachers(a_model(1))
    found = taught(server(), asked)
    plain = taught(server({"weight": 0.0}), asked)
    assert found.keys() == a_model(3).state_dict().keys()
    assert not torch.equal(found["conv.weight"], plain["conv.weight"])
    for name, value in asked[0].model.state_dict().items():
        assert torch.equal(value, before[name]), "the teacher does not learn"


def test_maps_of_another_shape_are_named():
    message = (
        r"student of round 2: server\.factor_transfer: feature maps of shape \[128, 4, 4\] of a "
        r"teacher of group 0: must have the student's, \[64, 4, 4\]"
    )
    with pytest.raises(FedstageError, match=message):
        taught(server(), teachers(a_model(1, "wrn16_2")))
