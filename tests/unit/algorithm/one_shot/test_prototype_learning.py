"""The loss of clients that learn prototypes."""

import math

import pytest
import torch
from torch.nn.functional import cross_entropy, normalize

from fedstage.algorithm.one_shot.prototype_learning import between, contrast, objective
from fedstage.models.heads import prototypes_of
from fedstage.models.initialisation import initialise
from fedstage.models.loading import build
from fedstage.randomness import torch_generator
from fedstage.settings.models import ResNet
from fedstage.settings.one_shot_clients import Prototypes
from fedstage.training.images import view
from fedstage.training.passes import PLAIN

INFO = {"mean": [0.5], "std": [0.25]}
CLASSES, WIDTH = 3, 64
NONE = {"near": 0.0, "apart": 0.0, "alike": 0.0}


def network(norm="none"):
    settings = ResNet(name="resnet8", norm=norm, more_outputs="features")
    model = build(settings, (1, 8, 8), CLASSES)
    initialise(model, torch_generator(0, "weights"))
    return model.double()


def batch(count=6):
    generator = torch.Generator().manual_seed(1)
    pixels = torch.rand(count, 1, 8, 8, generator=generator, dtype=torch.float64)
    return (pixels - 0.5) / 0.25, torch.arange(count) % CLASSES


def loss_of(model, **weights):
    settings = Prototypes.model_validate(NONE | weights)
    return objective(settings, INFO, PLAIN, torch_generator(0, "views"))(model, *batch())


def test_a_model_says_similarities_to_prototypes_and_its_features():
    model = network()
    said = model(batch()[0])
    assert said.shape == (6, CLASSES + WIDTH)
    features, prototypes = said[:, CLASSES:], prototypes_of(model)
    torch.testing.assert_close(said[:, :CLASSES], normalize(features) @ prototypes.T)
    assert 0.8 < float(prototypes.detach().std()) < 1.2


def test_without_other_terms_it_is_the_cross_entropy_of_two_views():
    model, (inputs, labels) = network(), batch()
    generator = torch_generator(0, "views")
    pixels = inputs * 0.25 + 0.5
    seen = torch.cat([view(pixels, generator), view(pixels, generator)])
    logits = model((seen - 0.5) / 0.25)[:, :CLASSES]
    expected = cross_entropy(logits, labels.repeat(2))
    torch.testing.assert_close(loss_of(model), expected)
    torch.testing.assert_close(loss_of(model, near=0.5), 1.5 * expected)


def test_terms_are_added_by_their_weights():
    model = network()
    prototypes = prototypes_of(model)
    with torch.no_grad():
        prototypes.mul_(0.1)  # at their full length they are apart already
    apart = loss_of(model, apart=0.5) - loss_of(model)
    torch.testing.assert_close(apart, 0.5 * between(prototypes))
    once, twice = (loss_of(model, alike=one, temperature=0.3) - loss_of(model) for one in (0.5, 1))
    torch.testing.assert_close(twice, 2 * once)
    assert float(once) > 0


def test_prototypes_are_contrasted_with_one_another():
    prototypes = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    expected = -(math.log(math.e / (math.e + 1)) + math.log(math.e**4 / (math.e**4 + 1))) / 2
    assert float(between(prototypes)) == pytest.approx(expected, rel=1e-5)


def test_features_of_a_class_are_contrasted_with_all_others():
    features = normalize(torch.randn(5, 4, generator=torch.Generator().manual_seed(0)))
    labels, tau, terms = torch.tensor([0, 1, 0, 1, 1]), 0.5, []
    for i in range(5):
        exps = {j: math.exp(float(features[i] @ features[j]) / tau) for j in range(5) if j != i}
        same = [j for j in exps if labels[j] == labels[i]]
        terms.append(-sum(math.log(exps[j] / sum(exps.values())) for j in same) / len(same))
    found = contrast(features, labels, tau)
    assert float(found) == pytest.approx(sum(terms) / 5, rel=1e-5)
