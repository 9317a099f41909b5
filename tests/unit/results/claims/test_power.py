import numpy as np
import pytest
from scipy import stats

from fedstage.results.claims.comparisons import Cell
from fedstage.results.claims.families import correct
from fedstage.results.claims.power import seeds_for, seeds_needed
from fedstage.results.claims.verdicts import judge
from fedstage.settings.claims import Claim, Family

VALUES = [-1.0, 2.0, -0.5, 1.1]


def claim(**more):
    sides = {"greater": {"method": "a"}, "than": {"method": "b"}}
    return Claim(id="i", text="t", place="p", experiment="e", **(sides | more))


def judged(one, published=None, values=VALUES):
    left = Cell({"method": "a"}, dict(enumerate(values)), published)
    zeros = Cell({"method": "b"}, dict.fromkeys(range(len(values)), 0.0), published and 0.0)
    return judge(one, [left, zeros])


def test_textbook_numbers():
    """Cohen (1988): paired, two-sided 0.05, power 0.8: 34 for 0.5, 15 for 0.8, 199 for 0.2."""
    assert [seeds_for(size, 0.05) for size in (0.5, 0.8, 0.2)] == [34, 15, 199]
    assert seeds_for(100.0, 0.05) == 2
    assert seeds_for(1e-4, 0.05) is None


def test_powers_are_those_of_statsmodels():
    reference = pytest.importorskip("statsmodels.stats.power")
    for size in (0.1, 0.7, 3.0):
        n = seeds_for(size, 0.01)
        powers = [reference.TTestPower().power(size, seeds, 0.01) for seeds in (n - 1, n)]
        assert powers[0] < 0.8 <= powers[1]


def test_the_number_is_what_simulated_tests_need():
    n = seeds_for(1.0, 0.01)
    rng = np.random.default_rng(0)
    for seeds, enough in ((n, True), (n - 1, False)):
        p_values = stats.ttest_1samp(rng.normal(1.0, 1.0, (40_000, seeds)), 0.0, axis=1).pvalue
        assert bool((p_values <= 0.01).mean() > 0.8) is enough


def test_the_published_effect_is_to_be_found_then_the_margin_then_the_measured_one():
    deviation = np.std(VALUES, ddof=1)
    for one, published, effect in (
        (claim(), 1.5, 1.5),
        (claim(margin=0.7), 1.5, 1.5),
        (claim(margin=0.7), None, 0.7),
        (claim(), None, np.mean(VALUES)),
    ):
        (found,) = judged(one, published).effects
        assert seeds_needed(one, found, 0.05) == seeds_for(effect / deviation, 0.05)
        half = seeds_needed(one, found, 0.05, share=0.5)
        assert half == seeds_for(effect / deviation / 2, 0.05)


def test_a_bounded_claim_is_decided_at_the_nearest_bound():
    bounded = {"greater": None, "than": None, "difference": {"method": "a"}, "to": {"method": "b"}}
    one = claim(**bounded, at_least=-3.0, at_most=2.0)
    (found,) = judged(one, 1.0).effects
    assert seeds_needed(one, found, 0.05) == seeds_for(1.0 / np.std(VALUES, ddof=1), 0.05)


def test_without_a_deviation_no_number_is_known():
    (found,) = judged(claim(), 1.0, [2.0]).effects
    assert seeds_needed(claim(), found, 0.05) is None
    (found,) = judged(claim(), 1.0, [2.0, 2.0]).effects
    assert seeds_needed(claim(), found, 0.05) == 2


def test_an_undecided_claim_tells_how_many_seeds_it_needs():
    one = judged(claim(primary=True, margin=1.0), 1.5)
    family = Family(claims=["i"], primary=5, exploratory=0)
    (found,) = correct([one], [family])
    size = 1.5 / np.std(VALUES, ddof=1)
    assert found.needed == seeds_for(size, 0.05 / 5)
    assert found.seeds == 4
    exploratory = Family(claims=["i"], primary=0, exploratory=5)
    (found,) = correct([judged(claim(), 1.5)], [exploratory])
    assert found.needed == seeds_for(size, 0.05 / 5)
    (sure,) = correct([judged(claim(), 1.5, [5.0, 5.1, 5.2])])
    assert sure.needed is None


def test_seeds_that_did_not_decide_are_no_number_that_would():
    family = Family(claims=["i"], primary=1, exploratory=0)
    one = judged(claim(primary=True, margin=1.0), 100.0)
    assert seeds_needed(one.claim, one.effects[0], 0.05) <= len(VALUES)
    (found,) = correct([one], [family])
    assert found.needed is None
