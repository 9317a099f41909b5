import pytest

from fedstage.settings.optimisation import Cosine, Cyclical, Step
from fedstage.training.schedules import factor


def factors(schedule, steps):
    return [factor(schedule, step, steps) for step in range(steps)]


def test_step_multiplies_after_each_milestone():
    schedule = Step(name="step", milestones=(0.5, 0.8), factor=0.1)
    assert factors(schedule, 10) == pytest.approx([1] * 5 + [0.1] * 3 + [0.01] * 2)


@pytest.mark.parametrize(("percent", "steps"), [(28, 25), (55, 100), (7, 100), (29, 100), (60, 5)])
def test_milestone_that_falls_on_a_step_starts_there(percent, steps):
    schedule = Step(name="step", milestones=(percent / 100,), factor=0.5)
    assert factors(schedule, steps).count(1.0) == percent * steps // 100


@pytest.mark.parametrize(
    ("final", "expected"),
    [
        (0.0, [1.0, 0.8535533906, 0.5, 0.1464466094]),
        (0.2, [1.0, 0.8828427125, 0.6, 0.3171572875]),
        (1.0, [1.0, 1.0, 1.0, 1.0]),
    ],
)
def test_cosine_against_hand_values(final, expected):
    assert factors(Cosine(name="cosine", final=final), 4) == pytest.approx(expected, abs=1e-9)


def test_cosine_never_reaches_its_final_value_and_a_single_step_is_whole():
    schedule = Cosine(name="cosine")
    assert factors(schedule, 1) == [1.0]
    falling = factors(schedule, 100)
    assert falling == sorted(falling, reverse=True)
    assert 0 < falling[-1] < 0.001


def test_cyclical_against_hand_values():
    schedule = Cyclical(name="cyclical", cycle=4, final=0.2)
    assert factors(schedule, 10) == pytest.approx([0.8, 0.6, 0.4, 0.2] * 2 + [0.8, 0.6])
