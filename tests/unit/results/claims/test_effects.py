from math import isnan

import numpy as np
import pytest
from scipy.stats import norm

from fedstage.results.claims.comparisons import Cell
from fedstage.results.claims.effects import image_error
from fedstage.results.claims.verdicts import judge
from fedstage.results.intervals import with_images
from fedstage.settings.claims import Claim


def claim(**form):
    return Claim(id="i", text="t", place="p", experiment="e", **form)


ABOVE = claim(greater={"method": "a"}, than={"method": "b"})


def cell(method, *values, images=400):
    return Cell({"method": method}, dict(enumerate(values)), images=images)


def test_the_error_of_test_images_is_binomial():
    """80 % and 60 % of 400: sqrt(0.16 / 400 + 0.24 / 400) = 3.162 points."""
    pair = (cell("a", 79.0, 81.0), cell("b", 60.0, 60.0))
    assert image_error(ABOVE, [pair]) == (pytest.approx(3.1623, abs=1e-4), 400)
    value = claim(value={"method": "a"}, at_least=1.0)
    assert image_error(value, [(pair[0], pair[0])]) == (pytest.approx(2.0), 400)
    # Pairs may share their images, so that a mean over them has no smaller error.
    assert image_error(ABOVE, [pair, pair])[0] == pytest.approx(3.1623, abs=1e-4)


def test_what_is_no_accuracy_has_no_error_of_images():
    ratio = claim(ratio={"method": "a"}, to={"method": "b"}, at_most=1.0)
    assert isnan(image_error(ratio, [(cell("a", 50.0), cell("b", 50.0))])[0])
    assert isnan(image_error(ABOVE, [(cell("a", 50.0, images=None), cell("b", 50.0))])[0])
    assert isnan(image_error(ABOVE, [(cell("a"), cell("b"))])[0])


def test_effects_have_the_interval_over_seeds_and_images():
    cells = [cell("a", 79.0, 81.0, 80.0), cell("b", 60.0, 60.5, 59.0)]
    (effect,) = judge(ABOVE, cells).effects
    expected = with_images(effect.values, effect.image_error**2, 400)
    assert effect.over_images == expected
    assert expected.low < effect.measured.low < effect.measured.high < expected.high


def test_the_interval_covers_what_new_seeds_and_new_images_would_give():
    """Simulated: two models whose answers share the difficulty of the images."""
    rng = np.random.default_rng(1)
    # P(N(m, 1 + 1 + 0.1^2) > 0), in points, for the mean skill m of each.
    one, other = (100 * norm.cdf(skill / 2.01**0.5) for skill in (1.0, 0.6))
    images, seeds, inside = 300, 4, 0
    for _ in range(200):
        difficulty = rng.normal(size=images)
        skill = rng.normal((1.0, 0.6), 0.1, (seeds, 2))
        noise = rng.normal(size=(2, seeds, images))
        right = skill.T[:, :, None] + noise > difficulty
        a, b = (100.0 * right.mean(2)).tolist()
        (effect,) = judge(
            ABOVE, [cell("a", *a, images=images), cell("b", *b, images=images)]
        ).effects
        inside += effect.over_images.low <= one - other <= effect.over_images.high
    assert inside / 200 >= 0.95


def reached(method, values, never=()):
    """A cell of parameters until a goal; the runs of the seeds in `never` end below it."""
    return Cell({"method": method}, dict(enumerate(values)), open_ended=frozenset(never))


RATIO = {"ratio": {"method": "a"}, "to": {"method": "b"}}


def test_a_ratio_to_a_run_that_ends_below_its_goal_is_at_most_its_value():
    """Whatever b would need in seeds 1 and 2, the ratios are at most 1.1 and 1.2."""
    cells = [reached("a", [10.0, 11.0, 12.0]), reached("b", [10.0] * 3, never=[1, 2])]
    below = judge(claim(**RATIO, at_least=2.5), cells)
    (effect,) = below.effects
    assert effect.values == pytest.approx([1.0, 1.1, 1.2])
    assert (effect.at_most, effect.at_least) == (2, 0)
    assert below.verdict == "contradicted"
    # Without limits, the same numbers decide what limits leave open.
    exact = [reached("a", [10.0, 11.0, 12.0]), reached("b", [10.0] * 3)]
    for bounds in ({"at_least": 0.5}, {"at_most": 0.5}):
        decided = judge(claim(**RATIO, **bounds), exact).verdict
        assert decided == ("holds" if "at_least" in bounds else "contradicted")
        assert judge(claim(**RATIO, **bounds), cells).verdict == "undecided"
    assert judge(claim(**RATIO, at_most=2.5), cells).verdict == "holds"


def test_a_ratio_of_a_run_that_ends_below_its_goal_is_at_least_its_value():
    cells = [reached("a", [10.0, 11.0, 12.0], never=[0]), reached("b", [10.0] * 3)]
    assert judge(claim(**RATIO, at_least=0.5), cells).verdict == "holds"
    assert judge(claim(**RATIO, at_least=2.5), cells).verdict == "undecided"
    assert judge(claim(**RATIO, at_most=0.5), cells).verdict == "contradicted"
    value = judge(claim(value={"method": "a"}, at_least=5.0), cells)
    assert (value.verdict, value.effects[0].at_least) == ("holds", 1)


def test_seeds_of_which_neither_side_reaches_its_goal_are_left_out():
    cells = [
        reached("a", [10.0, 11.0, 12.0], never=[0]),
        reached("b", [10.0, 5.0, 5.0], never=[0, 1]),
    ]
    (effect,) = judge(claim(**RATIO, at_least=2.5), cells).effects
    assert effect.values == pytest.approx([2.2, 2.4])


def test_limits_on_both_sides_of_a_mean_decide_nothing():
    pairs = [
        *(reached("a", [10.0, 10.5], never=[0]), reached("b", [10.0, 10.5])),
        *(reached("a", [10.0, 10.5]), reached("b", [10.0, 10.5], never=[0])),
    ]
    cells = [
        Cell(
            {"method": cell.axes["method"], "alpha": i // 2},
            cell.values,
            open_ended=cell.open_ended,
        )
        for i, cell in enumerate(pairs)
    ]
    mean = claim(**RATIO, at_least=0.5, quantifier="mean")
    assert judge(mean, [Cell(cell.axes, cell.values) for cell in cells]).verdict == "holds"
    judged = judge(mean, cells)
    assert (judged.effects[0].at_most, judged.effects[0].at_least) == (1, 1)
    assert judged.verdict == "undecided"


def test_a_difference_with_a_limit_is_never_practically_nil():
    cells = [reached("a", [10.0, 10.1, 10.0]), reached("b", [10.0, 10.0, 10.1])]
    near = ABOVE.model_copy(update={"margin": 1.0})
    assert judge(near, cells).verdict == "practically nil"
    limited = [cells[0], reached("b", [10.0, 10.0, 10.1], never=[2])]
    assert judge(near, limited).verdict == "undecided"
