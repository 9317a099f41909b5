import pytest

from fedstage.results.claims.comparisons import Cell
from fedstage.results.claims.evidence import evidence_of
from fedstage.settings.claims import Claim


def claim(**form):
    return Claim(id="i", text="t", place="p", experiment="e", **form)


ABOVE = claim(greater={"method": "a"}, than={"method": "b"})
BELOW = claim(less={"method": "a"}, than={"method": "b"})


def pair(left, right):
    return tuple(Cell({"method": name}, {}, *one) for name, one in zip("ab", (left, right)))  # noqa: B905


def test_welchs_test_of_printed_numbers():
    """Means 20 and 25, variances 4 and 9 over 5 and 8: t = -3.6037 with 10.87 degrees, 0.0042."""
    found = evidence_of(BELOW, [pair((20.0, 2.0, 5), (25.0, 3.0, 8))])
    assert found.p_values == [pytest.approx(0.00420, abs=2e-5)]
    assert str(found) == "1 of 1 as claimed, 1 with p ≤ 0.05, 1 after Holm"
    assert evidence_of(ABOVE, [pair((20.0, 2.0, 5), (25.0, 3.0, 8))]).as_claimed == 0


def test_comparisons_are_corrected_for_one_another():
    every = [pair((21.4 + n, 1.0, 3), (20.0 + n, 0.2, 3)) for n in range(3)]
    one = [pair((25.0, 1.0, 5), (20.0, 1.0, 5))]
    found = evidence_of(ABOVE, [*every, *one])
    assert found.p_values[3] == pytest.approx(found.adjusted[3] / 4)
    assert (found.tested, found.as_claimed, found.after_holm) == (4, 4, 1)
    twice = evidence_of(ABOVE, [*every, *one, *every])
    assert str(twice) == str(found), "the same printed numbers are one test"
    assert twice.p_values == found.p_values + found.p_values[:3]


def test_numbers_without_a_deviation_or_seeds_are_not_tested():
    known, unknown = (20.0, 2.0, 5), [(20.0, None, 5), (20.0, 2.0, None), (20.0, 2.0, 1), (None,)]
    for one in unknown:
        assert evidence_of(ABOVE, [pair(known, one)]) is None
    found = evidence_of(ABOVE, [pair(known, unknown[0]), pair((30.0, 2.0, 5), known)])
    assert found.p_values[0] is found.adjusted[0] is None
    assert str(found) == "1 of 1 as claimed, 1 with p ≤ 0.05, 1 after Holm"
    bounded = claim(ratio={"method": "a"}, to={"method": "b"}, at_most=2.0)
    assert evidence_of(bounded, [pair(known, known)]) is None
    assert evidence_of(ABOVE, [pair((1.0, 0.0, 3), (1.0, 0.0, 3))]) is None  # no p-value
