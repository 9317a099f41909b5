"""The server's sum is that of the integers, whoever drops out."""

from itertools import product

import numpy as np
import pytest
from protocol_of_secure_aggregation import answering, draw, masked_vectors, run

from fedstage.errors import FedstageError

#: When each client drops out: before step 0 to 3, or never (4).
NEVER = 4


def plain(values, dropped):
    return values[answering(dropped, 2)].sum(0, dtype=np.uint32)


def enough(dropped, threshold):
    return len(answering(dropped, 3)) >= threshold


@pytest.mark.slow
def test_every_pattern_of_six_clients_with_enough_survivors_gives_the_sum():
    values = draw(6, 5)
    patterns = [one for one in product(range(NEVER + 1), repeat=6) if enough(one, 4)]
    assert len(patterns) == 265
    for dropped in patterns:
        assert np.array_equal(run(values, dropped, 4), plain(values, dropped))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_random_patterns_of_forty_clients(seed):
    rng, values = np.random.default_rng(seed), draw(40, 3, seed)
    dropped = rng.choice(NEVER + 1, size=40, p=[0.05, 0.05, 0.1, 0.1, 0.7])
    assert enough(dropped, 21), "the draw has enough clients"
    assert np.array_equal(run(values, dropped, 21), plain(values, dropped))


def test_one_too_few_of_forty_clients_stop_the_round():
    dropped = [3] * 20 + [NEVER] * 20
    with pytest.raises(FedstageError) as caught:
        run(draw(40, 3), dropped, 21)
    assert str(caught.value) == (
        "round 1, group 0: 20 participants answered in the step 'unmask' of secure aggregation: "
        "needs aggregation.secure.threshold = 21"
    )


def test_masked_vectors_of_equal_values_are_uniform():
    """Chi squared over the highest and lowest byte of 200,000 numbers, which all were 7."""
    values = np.full((4, 50_000), 7, dtype=np.uint32)
    vectors = np.concatenate(list(masked_vectors(values, [NEVER] * 4, range(4)).values()))
    for byte in (vectors >> 24, vectors & 255):
        counts = np.bincount(byte, minlength=256)
        expected = len(vectors) / 256
        chi_squared = ((counts - expected) ** 2 / expected).sum()
        assert 170 < chi_squared < 355  # of 255 degrees of freedom, 1 in 10,000 beyond either end


def test_a_masked_vector_depends_on_everything_behind_it():
    values = np.zeros((4, 100), dtype=np.uint32)
    one, *others = masked_vectors(values, [NEVER] * 4, range(4)).values()
    assert all((one != other).mean() > 0.9 for other in others)
    (fewer, *_) = masked_vectors(values, [NEVER, NEVER, NEVER, 1], range(3)).values()
    assert (one != fewer).mean() > 0.9
