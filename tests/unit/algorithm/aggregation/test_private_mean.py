import pytest
import torch
from tests.shared.settings import federated

from fedstage.algorithm.aggregation.averages import average_weights
from fedstage.algorithm.aggregation.private_mean import clip_factor, private_mean
from fedstage.algorithm.aggregation.server import GroupRound, next_model
from fedstage.algorithm.exchange.updates import Update
from fedstage.errors import FedstageError
from fedstage.settings.privacy import ClientPrivacy
from fedstage.settings.recipes import Recipe

RECIPE = federated(
    clients=20, participants=5, model="logistic_regression", aggregation={"weights": "uniform"}
)


def how(clip=None, noise=0.0):
    return ClientPrivacy(clip=clip, noise=noise, delta=1e-3)


def drawn(seed, size=7):
    generator = torch.Generator().manual_seed(seed)
    return {name: torch.randn(size, size, generator=generator) for name in ("b", "a")}


def mean_of(settings, models, expected, start=None, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return private_mean(settings, models, start or drawn(0), expected, generator)


def length(one, other):
    return sum((one[name].double() - other[name]).square().sum() for name in one).sqrt().item()


@pytest.mark.parametrize("clip", [None, 1e6])
def test_without_noise_and_clipping_it_is_the_plain_average_to_the_bit(clip):
    models = [drawn(seed) for seed in range(1, 8)]
    plain = average_weights(models, [1.0] * 7)
    found = mean_of(how(clip), models, 7)
    assert all(torch.equal(found[name], value) for name, value in plain.items())


def test_a_change_is_as_long_as_the_clip_or_as_it_was():
    start, model = drawn(0), drawn(1)
    assert clip_factor(model, start, 1e6) == 1.0
    factor = clip_factor(model, start, 0.5)
    assert factor * length(model, start) == pytest.approx(0.5, rel=1e-12)
    assert length(mean_of(how(0.5), [model], 1, start), start) == pytest.approx(0.5, rel=1e-5)
    assert length(mean_of(how(0.5), [start], 1, start), start) == 0  # nothing is made longer


@pytest.mark.parametrize("gone", range(4))
def test_without_a_client_the_sum_moves_by_the_clip_at_most(gone):
    expected, clip = 4.0, 0.5
    start = {name: value.double() for name, value in drawn(0).items()}
    models = [drawn(seed) for seed in (1, 2, 3)] + [{n: v + 1e-3 for n, v in start.items()}]
    rest = [model for number, model in enumerate(models) if number != gone]
    with_all = mean_of(how(clip), models, expected, start)
    without = mean_of(how(clip), rest, expected, start)
    moved = expected * length(with_all, without)
    assert 0 < moved <= clip * (1 + 1e-9)


def test_noise_has_the_stated_deviation_and_follows_from_its_generator():
    start = {"a": torch.zeros(40_000), "b": torch.zeros(40_000)}
    noisy = mean_of(how(2.0, 1.5), [], 10.0, start)
    for value in noisy.values():
        assert value.std().item() == pytest.approx(2.0 * 1.5 / 10, rel=0.02)
        assert abs(value.mean().item()) < 0.01
    assert not torch.equal(noisy["a"], noisy["b"])
    again = mean_of(how(2.0, 1.5), [], 10.0, dict(reversed(start.items())))
    assert torch.equal(noisy["b"], again["b"])
    assert not torch.equal(noisy["a"], mean_of(how(2.0, 1.5), [], 10.0, start, seed=1)["a"])


def group_round(privacy, received, round_=1, **settings):
    recipe = Recipe.model_validate(RECIPE | {"privacy": privacy} | settings)
    start = drawn(0)
    return GroupRound(recipe, 0, received, start, start, {}, round=round_)


def update(client, **payload):
    notes = {"round": 1, "group": 0, "participant": client, "client": client, "samples": 1 + client}
    return Update(None, drawn(1 + client), payload, notes)


def test_a_round_of_the_server_is_the_plain_one_without_noise_and_clipping():
    received = [update(client) for client in range(5)]
    plain, _ = next_model(group_round(None, received))
    private = {"client": {"clip": None, "noise": 0.0, "delta": 0.01}}
    found, memory = next_model(group_round(private, received))
    assert memory == {}
    assert all(torch.equal(found[name], value) for name, value in plain.items())


NOISY = {"client": {"clip": 0.5, "noise": 1.0, "delta": 0.01}}


def test_noise_differs_by_round_and_hides_that_nobody_answered():
    first, second = (next_model(group_round(NOISY, [], round_))[0] for round_ in (1, 2))
    assert not torch.equal(first["a"], drawn(0)["a"])
    assert not torch.equal(first["a"], second["a"])


def test_recipes_of_a_seed_share_no_noise():
    """Else half of the louder noise would take the other away, and two rows would hide nothing."""
    louder = {"client": NOISY["client"] | {"noise": 2.0}}
    first, second = (next_model(group_round(how, []))[0] for how in (NOISY, louder))
    for name, start in drawn(0).items():
        assert not torch.allclose(second[name] - start, 2 * (first[name] - start), atol=1e-3)


def test_absent_participants_count_as_no_change():
    still = {"client": {"clip": 0.5, "noise": 0.0, "delta": 0.01}}
    found, _ = next_model(group_round(still, [update(0)]))
    assert length(found, drawn(0)) == pytest.approx(0.5 / 5, rel=1e-5)


def test_what_is_not_clipped_is_not_taken():
    with pytest.raises(FedstageError, match="sends 'extra' in addition to weights"):
        next_model(group_round(NOISY, [update(0, extra=torch.ones(1))]))
