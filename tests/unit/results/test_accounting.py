import pytest
from accounts import renyi_epsilon

from fedstage.results.accounting import fixed_size_epsilon, poisson_epsilon

# Of dp-accounting 0.6.0, computed apart from this repository.
REFERENCES = [
    (0.01, 1.0, 1000, "2.101", "1.828"),
    (0.1, 1.0, 100, "7.904", "7.047"),
    (1.0, 5.0, 10, "2.814", "2.594"),
]


@pytest.mark.parametrize(("rate", "noise", "steps", "renyi", "losses"), REFERENCES)
def test_reference_values(rate, noise, steps, renyi, losses):
    assert f"{renyi_epsilon(noise, rate, steps, 1e-5):.3f}" == renyi
    assert f"{poisson_epsilon(noise, rate, steps, 1e-5):.3f}" == losses


def test_fewer_steps_more_noise_and_a_smaller_sample_give_more_privacy():
    some = fixed_size_epsilon(4.0, 10, 100, 20, 1e-5)
    assert fixed_size_epsilon(4.0, 10, 100, 10, 1e-5) < some
    assert fixed_size_epsilon(5.0, 10, 100, 20, 1e-5) < some
    assert fixed_size_epsilon(4.0, 5, 100, 20, 1e-5) < some
    assert poisson_epsilon(4.0, 0.1, 20, 1e-5) < some  # whose sum changes by C, not by 2 C


def test_replacement_in_a_sample_of_all_is_a_gaussian_of_half_the_noise():
    replaced = fixed_size_epsilon(4.0, 10, 10, 5, 1e-5)
    assert replaced == pytest.approx(renyi_epsilon(2.0, 1.0, 5, 1e-5), rel=1e-6)
