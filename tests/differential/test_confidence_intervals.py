"""Confidence intervals and verdicts of claims against the paired t-test of scipy."""

import numpy as np
import pytest
from scipy import stats

from fedstage.results.comparisons import Cell
from fedstage.results.statistics import confidence_interval
from fedstage.results.verdicts import CONTRADICTED, HOLDS, judge
from fedstage.settings.scores import Claim

CLAIM = {"id": "a", "text": "t", "place": "p", "experiment": "e"}
ABOVE = Claim(**CLAIM, greater={"method": "a"}, than={"method": "b"})


@pytest.mark.parametrize("seeds", [2, 3, 5, 10])
def test_intervals_of_differences(seeds):
    rng = np.random.default_rng(seeds)
    for shift in (-3.0, 0.0, 0.5, 3.0):
        one = rng.normal(60.0 + shift, 2.0, seeds)
        other = rng.normal(60.0, 2.0, seeds) + 0.5 * (one - 60.0)
        test = stats.ttest_rel(one, other)
        expected = test.confidence_interval(0.95)
        interval = confidence_interval(list(one - other))
        assert (interval.low, interval.high) == pytest.approx(
            (expected.low, expected.high), rel=1e-9
        )


def test_verdicts_are_those_of_the_test_at_five_percent():
    rng = np.random.default_rng(7)
    seen = set()
    for _ in range(200):
        one, other = rng.normal(60.5, 1.0, 4), rng.normal(60.0, 1.0, 4)
        if rng.random() < 0.5:
            one, other = other - 1.0, one
        cells = [
            Cell({"method": name}, dict(enumerate(map(float, values))))
            for name, values in (("a", one), ("b", other))
        ]
        test = stats.ttest_rel(one, other)
        (effect,) = judge(ABOVE, cells).effects
        assert (effect.verdict in (HOLDS, CONTRADICTED)) == (test.pvalue < 0.05)
        if test.pvalue < 0.05:
            assert effect.verdict == (HOLDS if test.statistic > 0 else CONTRADICTED)
        seen.add(effect.verdict)
    assert len(seen) == 3


def test_differences_are_paired_by_seed_and_not_by_position():
    one = {0: 61.0, 1: 65.0, 2: 70.0}
    other = {2: 69.5, 0: 60.0, 1: 64.2}
    (effect,) = judge(ABOVE, [Cell({"method": "a"}, one), Cell({"method": "b"}, other)]).effects
    expected = stats.ttest_rel([61.0, 65.0, 70.0], [60.0, 64.2, 69.5]).confidence_interval()
    assert (effect.measured.low, effect.measured.high) == pytest.approx(tuple(expected), rel=1e-9)
