"""What is said of each rule of aggregation, but voting and experts (see beside)."""

import pytest
import torch
from pydantic import TypeAdapter

from fedstage.algorithm.one_shot.aggregators import Knowledge, combination, rule
from fedstage.randomness import torch_generator
from fedstage.settings.aggregators import Aggregator

M, N, C = 3, 40, 4
WIDTH = 5  # of features
NAMES = [
    "averaging", "weighted", "confidence", "least_unknown", "fused_features", "linear", "simplex",
    "per_class", "mlp", "voting", "moe",
]  # fmt: skip
COUNTS = torch.tensor([[4, 0, 0, 1], [4, 2, 0, 0], [0, 6, 0, 3]])


def chosen(raw):
    return TypeAdapter(Aggregator).validate_python(raw)


def known(counts=COUNTS):
    votes = torch.ones(len(counts), counts.shape[1], counts.shape[1], dtype=torch.int64)
    drawn = torch.randn(*counts.shape, WIDTH, generator=torch.Generator().manual_seed(4))
    return Knowledge(counts, (3, 32, 32), votes, drawn)


def spoken(seed=0, members=M, samples=N, classes=C):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(members, samples, classes, generator=generator) * 3


def pixels(samples=N):
    return torch.randn(samples, 3, 32, 32, generator=torch.Generator().manual_seed(9))


def started(raw, counts=COUNTS, seed=0):
    return rule(chosen(raw)).parameters(chosen(raw), known(counts), torch_generator(seed, "t"))


def said(raw, logits, counts=COUNTS, parameters=None):
    parameters = started(raw, counts) if parameters is None else parameters
    return combination(chosen(raw))(parameters, logits, pixels(logits.shape[1]))


def seen_by(name):
    """Logits as a rule sees them, with the unknown class or features only where they are seen."""
    more = {"least_unknown": 1, "fused_features": WIDTH}
    return spoken(classes=C + more.get(name, 0))


# --- what holds for all of them -------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_a_rule_says_finite_logits_of_each_sample_by_itself(name):
    logits = seen_by(name)
    together = said(name, logits)
    assert together.shape == (N, C)
    assert together.dtype == torch.float32
    assert bool(together.isfinite().all())
    parameters, images = started(name), pixels()
    apart = [
        combination(chosen(name))(parameters, logits[:, n : n + 1], images[n : n + 1])
        for n in range(N)
    ]
    assert torch.allclose(torch.cat(apart), together, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_parameters_are_trained_exactly_where_the_settings_say_so(name):
    parameters = {key: value.requires_grad_() for key, value in started(name).items()}
    out = combination(chosen(name))(parameters, seen_by(name), pixels())
    loss = torch.nn.functional.cross_entropy(out, torch.zeros(N, dtype=torch.int64))
    if not chosen(name).trained:
        kinds = ("averaging", "weighted", "confidence", "least_unknown", "fused_features", "voting")
        assert name in kinds
        return
    gradients = torch.autograd.grad(loss, list(parameters.values()))
    assert all(bool((gradient != 0).any()) for gradient in gradients)


# --- averages -------------------------------------------------------------------------------------


def test_the_simplex_mixes_probabilities_and_starts_with_their_mean():
    logits = spoken()
    assert torch.allclose(said("simplex", logits).exp(), logits.softmax(2).mean(0), atol=1e-6)
    one = said("simplex", logits, parameters={"weights": torch.tensor([0.0, 1.0, 0.0])})
    assert torch.allclose(one, logits[1].log_softmax(1), atol=1e-6)


@pytest.mark.parametrize("name", ["linear", "per_class"])
def test_trained_weights_start_as_the_average(name):
    logits = spoken()
    assert torch.allclose(said(name, logits), said("averaging", logits), atol=1e-6)


def test_a_class_that_nobody_has_counts_as_the_mean():
    assert torch.allclose(started("weighted")["weights"][:, 2], torch.full((M,), 1 / M))


def test_linear_and_per_class_multiply_as_they_say():
    logits = spoken()
    w = torch.tensor([0.5, -1.0, 2.0])
    expected = 0.5 * logits[0] - logits[1] + 2 * logits[2]
    assert torch.allclose(said("linear", logits, parameters={"weights": w}), expected, atol=1e-5)
    by_class = torch.arange(M * C).reshape(M, C).float()
    expected = sum(by_class[i] * logits[i] for i in range(M))
    found = said("per_class", logits, parameters={"weights": by_class})
    assert torch.allclose(found, expected, atol=1e-4)


# --- what is least unknown ------------------------------------------------------------------------


def with_unknown(unknown):
    """Logits [M, N, C + 1], in which the probabilities of the unknown class are as given."""
    share = torch.tensor(unknown)[:, None, None].expand(M, N, 1)
    return torch.cat([spoken().log_softmax(2) + (1 - share).log(), share.log()], 2)


def test_votes_are_weighted_by_what_is_known():
    out = said("least_unknown", with_unknown([0.5, 0.0, 0.75]))
    p = spoken().softmax(2)
    mean = (0.5 * p[0] + p[1] + 0.25 * p[2]) / 1.75
    assert torch.allclose(out.softmax(1), mean, atol=1e-6)


def test_fused_features_are_compared_with_mean_prototypes():
    outputs = spoken(classes=C + WIDTH)
    found, samples = said("fused_features", outputs), COUNTS.sum(1)
    for n in range(N):
        fused = sum(samples[i] / samples.sum() * outputs[i, n, C:] for i in range(M))
        for c in range(C):
            prototype = sum(known().prototypes[i, c] for i in range(M)) / M
            alike = float((fused / fused.norm()) @ prototype)
            assert float(found[n, c]) == pytest.approx(alike, abs=1e-5)


# --- the network ----------------------------------------------------------------------------------


def numbers(parameters):
    return sum(value.numel() for value in parameters.values())


def test_sizes_of_the_network_are_those_of_the_paper():
    cifar10, agnews = torch.ones(20, 10, dtype=torch.int64), torch.ones(10, 4, dtype=torch.int64)
    assert numbers(started("mlp", cifar10)) == 8400  # no biases, as the equation is printed
    assert numbers(started("mlp", agnews)) == 1760
    assert numbers(started({"mlp": {"biases": True}}, cifar10)) == 8450  # as released
    cifar100 = torch.ones(20, 100, dtype=torch.int64)
    assert numbers(started("per_class", cifar100)) == 2000
    assert numbers(started("linear", cifar100)) == 20
