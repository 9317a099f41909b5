"""FedBE's distributions over models: draws against loops in float64, and their moments."""

from functools import cache

import numpy as np
import pytest
import torch

from fedstage.algorithm.aggregation.averages import average_weights
from fedstage.algorithm.ensemble_trainers.sampling import (
    draw,
    gaussian,
    gaussian_as_released,
)
from fedstage.randomness import numpy_generator, torch_generator
from fedstage.settings.ensembles import Bayesian

SHAPES = {"weight": (3, 2), "bias": (3,)}
WEIGHTS = [10.0, 30.0, 5.0, 55.0]
DRAWS = 5000


@cache
def models(count=4, moved=1.0):
    """Models around a common one."""
    found = []
    for client in range(count):
        generator = torch_generator("model", client)
        found.append(
            {
                name: start()[name] + moved * (client + 1) * torch.randn(shape, generator=generator)
                for name, shape in SHAPES.items()
            }
        )
    return found


@cache
def start():
    generator = torch_generator("start")
    return {name: torch.randn(shape, generator=generator) for name, shape in SHAPES.items()}


def stacked(name):
    return np.stack([model[name].double().numpy() for model in models()])


# --- Gaussian, as published -----------------------------------------------------------------------


def published_moments():
    p = np.array(WEIGHTS) / sum(WEIGHTS)
    mean, variance = {}, {}
    for name, shape in SHAPES.items():
        values = stacked(name)
        mean[name], variance[name] = np.zeros(shape), np.zeros(shape)
        for share, value in zip(p, values, strict=True):
            mean[name] += share * value
        for share, value in zip(p, values, strict=True):
            variance[name] += share * (value - mean[name]) ** 2
    return mean, variance


def test_a_published_draw_is_mean_plus_deviation_times_noise():
    mean, variance = published_moments()
    generator = torch_generator("noise")
    ours = gaussian(models(), WEIGHTS, torch_generator("noise"))
    for name, shape in SHAPES.items():
        noise = torch.randn(shape, generator=generator, dtype=torch.float64).numpy()
        assert np.allclose(ours[name].numpy(), mean[name] + np.sqrt(variance[name]) * noise)
        assert (ours[name].dtype, tuple(ours[name].shape)) == (torch.float32, shape)


# --- Gaussian, as released ------------------------------------------------------------------------


def released_moments(scale=0.1, least=1e-5):
    mean, variance = {}, {}
    for name, shape in SHAPES.items():
        base = start()[name].double().numpy()
        moves = [value - base for value in stacked(name)]
        lengths = [np.sqrt((move**2).sum()) for move in moves]
        directions = [move / length for move, length in zip(moves, lengths, strict=True)]
        middle = sum(directions) / 4
        spread = np.maximum(sum(u**2 for u in directions) / 4 - middle**2, least)
        length = sum(lengths) / 4
        mean[name] = base + length * middle
        variance[name] = (length * scale) ** 2 * spread
        assert mean[name].shape == shape
    return mean, variance


def test_the_released_variance_never_falls_below_its_bound():
    """Clients that agree are still drawn around, by 0.1 sqrt(1e-5) times the update's length."""
    same = [models()[0]] * 3
    ours = gaussian_as_released(same, start(), torch_generator("draw"))
    generator = torch_generator("draw")
    for name, shape in SHAPES.items():
        length = float((same[0][name] - start()[name]).norm())
        noise = torch.randn(shape, generator=generator, dtype=torch.float64)
        moved = (ours[name].double() - same[0][name].double()) / length
        assert torch.allclose(moved, 0.1 * 1e-5**0.5 * noise, atol=1e-6)


def test_a_tensor_that_nobody_moved_stays():
    still = [model | {"bias": start()["bias"]} for model in models()]
    ours = gaussian_as_released(still, start(), torch_generator("draw"))
    assert torch.equal(ours["bias"], start()["bias"])
    assert all(bool(value.isfinite().all()) for value in ours.values())


# --- drawing for an ensemble ----------------------------------------------------------------------

KEY = (0, "logits", 3, 1)
NORMS = {"norm.running_var": torch.tensor([1e-6, 2.0]), "norm.num_batches_tracked": torch.tensor(7)}


def with_norms():
    """Clients' models whose running variances are far from one another."""
    return [
        model
        | {
            "norm.running_var": torch.tensor([1e-8, 9.0 * client]),
            "norm.num_batches_tracked": torch.tensor(client),
        }
        for client, model in enumerate(models())
    ]


def aggregated():
    return average_weights(models(), WEIGHTS) | NORMS


def drawn(settings, key=KEY):
    chosen = Bayesian.model_validate({"name": "bayesian"} | settings)
    return draw(chosen, with_norms(), WEIGHTS, aggregated(), start(), list(SHAPES), key)


VARIANTS = [{}, {"variant": "as_released"}, {"distribution": "dirichlet"}]


@pytest.mark.parametrize("settings", VARIANTS, ids=str)
def test_more_samples_begin_with_those_of_fewer(settings):
    few, many = drawn({**settings, "samples": 3}), drawn({**settings, "samples": 5})
    assert (len(few), len(many)) == (3, 5)
    for one, other in zip(few, many, strict=False):
        assert all(torch.equal(one[name], other[name]) for name in one)
    assert not torch.equal(many[0]["weight"], many[1]["weight"])


@pytest.mark.parametrize("settings", VARIANTS, ids=str)
def test_rounds_groups_and_seeds_draw_for_themselves(settings):
    keys = [KEY, (1, "logits", 3, 1), (0, "logits", 4, 1), (0, "logits", 3, 0)]
    found = [drawn({**settings, "samples": 1}, key)[0]["weight"] for key in keys]
    assert all(not torch.equal(found[0], other) for other in found[1:])
    assert torch.equal(found[0], drawn({**settings, "samples": 1})[0]["weight"])


@pytest.mark.parametrize("settings", VARIANTS[:2], ids=str)
def test_a_gaussian_draws_parameters_and_takes_the_average_statistics(settings):
    for model in drawn({**settings, "samples": 20}):
        assert all(torch.equal(model[name], value) for name, value in NORMS.items())


def test_a_dirichlet_combines_statistics_as_it_combines_parameters():
    (model,) = drawn({"distribution": "dirichlet", "samples": 1})
    gamma = numpy_generator(*KEY, "dirichlet", 0).dirichlet([1.0] * 4)
    expected = {
        name: sum(g * one[name].double() for g, one in zip(gamma, with_norms(), strict=True))
        for name in ("weight", "norm.running_var")
    }
    for name, value in expected.items():
        assert torch.allclose(model[name].double(), value, atol=1e-6)
    assert (model["norm.running_var"] > 0).all()


def test_variants_of_the_gaussian_are_drawn_with_the_same_noise():
    (one,), (other,) = drawn({"samples": 1}), drawn({"samples": 1, "variant": "as_released"})
    (mean, variance), (other_mean, other_variance) = published_moments(), released_moments()
    for name in SHAPES:
        noise = (one[name].double().numpy() - mean[name]) / np.sqrt(variance[name])
        same = (other[name].double().numpy() - other_mean[name]) / np.sqrt(other_variance[name])
        assert np.allclose(noise, same, atol=1e-3)
