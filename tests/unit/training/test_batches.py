import pytest
import torch

from fedstage.randomness import torch_generator
from fedstage.settings.optimisation import Client
from fedstage.training.batches import all_batches, client_batches, public_batches


def client(**settings):
    return Client.model_validate({"learning_rate": 0.1, "batch_size": 4, "epochs": 1} | settings)


def drawn(samples, seed=0, **settings):
    return client_batches(samples, client(**settings), torch_generator(seed, "batches"))


def sizes(batches):
    return [len(batch) for batch in batches]


LAST = {
    "keep": {12: [4, 4, 4], 10: [4, 4, 2], 9: [4, 4, 1]},
    "drop": {12: [4, 4, 4], 10: [4, 4], 9: [4, 4]},
    "drop_single": {12: [4, 4, 4], 10: [4, 4, 2], 9: [4, 4], 5: [4]},
    "merge_single": {12: [4, 4, 4], 10: [4, 4, 2], 9: [4, 5], 5: [5]},
}


@pytest.mark.parametrize("rule", LAST)
def test_last_batch_rules(rule):
    for samples, expected in LAST[rule].items():
        batches = drawn(samples, last_batch=rule)
        assert sizes(batches) == expected
        seen = torch.cat(batches).tolist()
        assert len(set(seen)) == len(seen), "a sample occurs once an epoch"
        assert set(seen) <= set(range(samples))


def test_epochs_are_the_generators_permutations():
    generator = torch_generator(0, "batches")
    expected = torch.cat([torch.randperm(10, generator=generator) for _ in range(2)])
    assert torch.equal(torch.cat(drawn(10, epochs=2)), expected)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [(1, [4]), (3, [4, 4, 2]), (5, [4, 4, 2, 4, 4]), (7, [4, 4, 2, 4, 4, 2, 4])],
)
def test_steps_go_on_beyond_one_epoch(steps, expected):
    by_steps = drawn(10, epochs=None, steps=steps)
    by_epochs = drawn(10, epochs=3)
    assert sizes(by_steps) == expected
    assert all(torch.equal(a, b) for a, b in zip(by_steps, by_epochs, strict=False))


@pytest.mark.parametrize(
    ("samples", "expected"), [(8, [4, 4]), (10, [4, 4, 2]), (9, [4, 5]), (3, [3]), (1, [1])]
)
def test_all_batches_are_every_sample_once_in_order(samples, expected):
    batches = all_batches(samples, 4)
    assert sizes(batches) == expected
    assert torch.cat(batches).tolist() == list(range(samples))


def public(samples, batch_size, steps):
    return public_batches(samples, batch_size, steps, torch_generator(0, "public"))


def test_public_batches_are_full_and_an_epoch_repeats_nothing():
    batches = public(10, 4, 6)
    assert sizes(batches) == [4] * 6
    for start in (0, 2, 4):
        epoch = torch.cat(batches[start : start + 2]).tolist()
        assert len(set(epoch)) == 8
    assert not torch.equal(torch.cat(batches[:2]), torch.cat(batches[2:4]))


def test_steps_go_on_where_other_rounds_have_stopped():
    def taken(skipped, steps):
        chosen = client(epochs=None, steps=steps, last_batch="keep")
        return client_batches(10, chosen, torch_generator(0, "batches"), skipped)

    whole = taken(0, 11)  # three epochs and a bit, of batches of 4, 4 and 2
    parts = [batch for start in range(0, 11, 4) for batch in taken(start, min(4, 11 - start))]
    assert [batch.tolist() for batch in parts] == [batch.tolist() for batch in whole]
    assert sizes(taken(4, 4)) == [4, 2, 4, 4], "in the midst of the second epoch"
