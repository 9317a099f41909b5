import random
import subprocess
import sys
from itertools import combinations

import numpy as np
import pytest
import torch

from fedstage.randomness import drawing_from, numpy_generator, seed_globals, torch_generator

KEYS = [
    (0,),
    (1,),
    (-1,),
    ("0",),
    (0, 0),
    (0, "0"),
    (0, "partition"),
    (0, "partition", "clients"),
    (0, "partition clients"),
    (0, "participation", 1),
    (0, "participation", 11),
    (0, "participation", 1, 1),
    (0, "local_training", 1, 2, "batches"),
    (0, "local_training", 2, 1, "batches"),
    (0, "local_training", 1, 2, "augmentation"),
    (0, "local_training", 12, "batches"),
    (),
]


def draws(key):
    return tuple(numpy_generator(*key).integers(0, 2**62, 4).tolist())


def torch_draws(key):
    return tuple(torch.randint(2**62, (4,), generator=torch_generator(*key)).tolist())


@pytest.mark.parametrize("draw", [draws, torch_draws])
def test_a_key_always_gives_the_same_stream(draw):
    first = {key: draw(key) for key in KEYS}
    assert {key: draw(key) for key in reversed(KEYS)} == first


@pytest.mark.parametrize("draw", [draws, torch_draws])
def test_different_keys_give_streams_that_share_no_number(draw):
    for one, other in combinations(KEYS, 2):
        assert not set(draw(one)) & set(draw(other)), (one, other)


@pytest.mark.parametrize("make", [numpy_generator, torch_generator])
def test_every_call_gives_a_generator_of_its_own(make):
    one, other = make(0, "a"), make(0, "a")
    assert one is not other


def test_streams_of_neighbouring_keys_are_uncorrelated():
    streams = np.stack([numpy_generator(seed, "x").standard_normal(4000) for seed in range(20)])
    correlation = np.corrcoef(streams) - np.eye(20)
    assert np.abs(correlation).max() < 5 / np.sqrt(4000)


def test_global_generators_are_neither_used_nor_changed():
    found = []
    for global_seed in (0, 1):
        np.random.seed(global_seed)  # noqa: NPY002 - it must not matter
        torch.manual_seed(global_seed)
        before = np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002
        found.append((draws((0, "a")), torch_draws((0, "a"))))
        np.testing.assert_array_equal(before[0], np.random.get_state()[1])  # noqa: NPY002
        assert torch.equal(before[1], torch.get_rng_state())
    assert found[0] == found[1]


def test_torch_generator_is_on_the_cpu():
    assert torch_generator(0).device == torch.device("cpu")


PINNED_RAW = [14492523710632782837, 2292137375887308963]
PINNED_SEED = 697665228765651305


def test_streams_are_the_same_on_every_machine_and_in_every_version():
    message = "results of a seed would no longer be reproducible: keep keys and generators"
    raw = numpy_generator(0, "participation", 1).bit_generator.random_raw(2).tolist()
    assert raw == PINNED_RAW, message
    assert torch_generator(0, "initial_model", 0, "weights").initial_seed() == PINNED_SEED, message


def test_numpy_generators_do_not_import_torch():
    code = (
        "import sys; from fedstage.randomness import numpy_generator; "
        "numpy_generator(0).random(); print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def global_draws():
    return random.random(), np.random.rand(), float(torch.rand(1))  # noqa: NPY002


def test_global_generators_follow_from_the_key_and_from_nothing_before():
    seed_globals(0, "a")
    first = global_draws()
    assert global_draws() != first
    seed_globals(0, "a")
    assert global_draws() == first
    seed_globals(0, "b")
    assert not set(global_draws()) & set(first)


def test_a_model_that_is_built_in_a_job_leaves_the_draws_of_the_job(monkeypatch):
    """Those of a GPU, too, whose seed may still wait for the first use of the GPU."""
    seeds = []
    monkeypatch.setattr(torch.cuda, "manual_seed_all", seeds.append)
    seed_globals(0, "job")
    expected = global_draws()
    seed_globals(0, "job")
    with drawing_from("network"):
        inside = global_draws()
    assert global_draws() == expected != inside
    assert len(seeds) == 2
    assert seeds[0] == seeds[1]
