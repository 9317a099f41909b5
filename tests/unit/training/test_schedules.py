import pytest

from fedstage.settings.optimisation import Constant, Cosine, Cyclical, Step
from fedstage.training.schedules import factor


def factors(schedule, steps):
    return [factor(schedule, step, steps) for step in range(steps)]


def test_constant_is_one():
    assert factors(Constant(name="constant"), 5) == [1.0] * 5


def test_step_multiplies_after_each_milestone():
    schedule = Step(name="step", milestones=(0.5, 0.8), factor=0.1)
    assert factors(schedule, 10) == pytest.approx([1] * 5 + [0.1] * 3 + [0.01] * 2)


def test_step_between_two_steps_takes_the_later_one():
    schedule = Step(name="step", milestones=(0.5,), factor=0.5)
    assert factors(schedule, 5) == [1, 1, 1, 0.5, 0.5]


def test_milestone_zero_holds_from_the_start():
    assert factors(Step(name="step", milestones=(0.0,), factor=0.25), 3) == [0.25] * 3


def test_default_factor_of_step_is_a_tenth():
    assert factors(Step(name="step", milestones=(0.5,)), 2) == [1, 0.1]


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


def test_cyclical_is_lowest_where_a_cycle_ends_however_long_the_training():
    schedule = Cyclical(name="cyclical", cycle=3)
    assert [factor(schedule, step, steps) for step in (2, 5) for steps in (6, 60)] == [0.0] * 4
