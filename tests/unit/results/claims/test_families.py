import pytest
from scipy import stats

from fedstage.results.claims.comparisons import Cell
from fedstage.results.claims.effects import (
    CONTRADICTED,
    HOLDS,
    NIL,
    NOT_MEASURED,
    NOT_TESTED,
    UNDECIDED,
)
from fedstage.results.claims.families import correct
from fedstage.results.claims.table import lines_of
from fedstage.results.claims.verdicts import HOLDS_SO_FAR, judge
from fedstage.settings.claims import Claim, Family

SOMEWHAT = [2.0, 3.0, 2.2]  # p = 0.0164
CLEARLY = [10.0, 11.0, 9.5]  # p = 0.0018
NOTHING = [-1.0, 2.0, -0.5]
SLIGHTLY = [0.1, 0.2, 0.3]  # p = 0.074, and within a point with p < 0.01


def claim(name="i", **more):
    sides = {"greater": {"method": "a"}, "than": {"method": "b"}}
    return Claim(id=name, text="t", place="p", experiment="e", **(sides | more))


def primary(name="i", **more):
    return claim(name, primary=True, margin=1.0, **more)


def cells(*differences, published=()):
    found = []
    for alpha, values in enumerate(differences):
        number = published[alpha] if published else 1.0
        one = {seed: 60.0 + seed + value for seed, value in enumerate(values)}
        found += [
            Cell({"method": "a", "alpha": alpha}, one, number),
            Cell({"method": "b", "alpha": alpha}, {seed: 60.0 + seed for seed in one}, 0.5),
        ]
    return found


def judged(one, *differences, **more):
    return judge(one, cells(*differences), **more)


def p_of(values):
    return float(stats.ttest_1samp(values, 0.0).pvalue)


def test_exploratory_claims_are_corrected_for_false_discoveries():
    """Benjamini and Hochberg: the smallest of three counts three times, the next 3 / 2 times."""
    p = p_of(SOMEWHAT)
    every = [judged(claim(name), SOMEWHAT) for name in "abc"]
    assert [one.p.smallest for one in correct(every)] == pytest.approx([p] * 3)
    others = [judged(claim(name), NOTHING) for name in "xyz"]
    first, *_ = correct([judged(claim(), SOMEWHAT), *others])
    assert (first.verdict, first.p.smallest) == (UNDECIDED, pytest.approx(4 * p))
    first, second, *_ = correct([every[0], every[1], others[0]])
    assert first.p.smallest == second.p.smallest == pytest.approx(1.5 * p)
    assert first.verdict == HOLDS


def test_primary_claims_are_corrected_by_holm_and_not_for_the_others():
    strong, weak = judged(primary("a"), CLEARLY), judged(primary("b"), SOMEWHAT)
    others = [judged(claim(name), NOTHING) for name in "xyz"]
    first, second, *_ = correct([strong, weak, *others])
    assert first.p.smallest == pytest.approx(2 * p_of(CLEARLY))
    assert second.p.smallest == pytest.approx(p_of(SOMEWHAT))
    assert (first.verdict, second.verdict) == (HOLDS, HOLDS)
    # Unlike the correction for false discoveries, that for any error counts equal ones too.
    same = correct([judged(primary(name), SOMEWHAT) for name in "ab"])
    assert [one.p.smallest for one in same] == pytest.approx([2 * p_of(SOMEWHAT)] * 2)


def test_claims_of_the_file_that_are_not_measured_count():
    family = Family(claims=["a", "b"], primary=5, exploratory=20)
    first, second = correct([judged(primary("a"), CLEARLY), judged(claim("b"), CLEARLY)], [family])
    assert first.p.smallest == pytest.approx(5 * p_of(CLEARLY))
    assert second.p.smallest == pytest.approx(20 * p_of(CLEARLY))
    none = judged(claim("b"), [])
    assert correct([none], [family]) == [none]
    assert none.verdict == NOT_MEASURED


def test_families_do_not_count_for_one_another():
    one, other = judged(claim("a"), SOMEWHAT), judged(claim("b"), NOTHING)
    families = [Family(claims=[name], primary=0, exploratory=1) for name in "ab"]
    first, _ = correct([one, other], families)
    assert first.p.smallest == pytest.approx(p_of(SOMEWHAT))


# --- practically nil ------------------------------------------------------------------------------


def test_a_difference_within_the_margin_is_practically_nil():
    low = stats.ttest_1samp(SLIGHTLY, -1.0, alternative="greater").pvalue
    high = stats.ttest_1samp(SLIGHTLY, 1.0, alternative="less").pvalue
    (one,) = correct([judged(claim(margin=1.0), SLIGHTLY)])
    assert one.p.nil == pytest.approx(max(low, high))
    assert (one.verdict, one.p_verdict) == (NIL, one.p.nil)
    assert judged(claim(margin=0.3), SLIGHTLY).verdict == UNDECIDED
    assert judged(claim(), SLIGHTLY).verdict == UNDECIDED
    # Of both cells; and on whichever side of 0 it is.
    assert judged(claim(margin=1.0), SLIGHTLY, SOMEWHAT).verdict == UNDECIDED
    below = [-0.31, -0.30, -0.29]
    assert judged(claim(), below).verdict == CONTRADICTED
    assert judged(claim(margin=1.0), below).verdict == NIL


def test_the_test_of_nothing_is_corrected_too():
    alone = judged(claim(margin=1.0), SLIGHTLY)
    (one,) = correct([alone], [Family(claims=["i"], primary=0, exploratory=100)])
    assert alone.p.nil < 0.01 < 0.05 < one.p.nil
    assert one.verdict == UNDECIDED


# --- primary claims -------------------------------------------------------------------------------


def test_a_primary_claim_of_one_cell_is_one_line():
    (one,) = correct([judged(primary(), CLEARLY)])
    assert [(line.kind, line.place) for line in lines_of(one)] == [("primary", 0)]
    (two,) = correct([judged(primary(), CLEARLY, CLEARLY)])
    lines = [(line.kind, line.place) for line in lines_of(two)]
    assert lines == [("primary", None), ("cell", 0), ("cell", 1)]


def test_a_primary_claim_is_judged_on_its_mean_and_its_cells_behind_it():
    (one,) = correct([judged(primary(), CLEARLY, NOTHING)])
    mean = [(x + y) / 2 for x, y in zip(CLEARLY, NOTHING, strict=True)]
    assert one.effects[0].values == pytest.approx(mean)
    assert (one.verdict, one.p.smallest) == (HOLDS, pytest.approx(p_of(mean)))
    # Holm among both cells: 2 x 0.0018, and 0.9.
    assert [cell.verdict for cell in one.cells] == [HOLDS, UNDECIDED]


def test_the_cells_of_an_undecided_claim_are_not_tested():
    (one,) = correct([judged(primary(), CLEARLY, [-9.0, 8.0, 0.0])])
    assert one.verdict == UNDECIDED
    assert [cell.verdict for cell in one.cells] == [NOT_TESTED, NOT_TESTED]


def test_cells_are_corrected_for_their_number():
    (one,) = correct([judged(primary(), *[SOMEWHAT] + [NOTHING] * 3)])
    assert p_of(SOMEWHAT) < 0.05 < 4 * p_of(SOMEWHAT)
    assert one.cells[0].verdict == NOT_TESTED  # the mean of three of nothing is undecided
    (one,) = correct([judged(primary(), CLEARLY, CLEARLY, SOMEWHAT, NOTHING)])
    assert one.verdict == HOLDS
    assert [cell.verdict for cell in one.cells] == [HOLDS, HOLDS, HOLDS, UNDECIDED]


def test_the_mean_is_over_the_cells_that_are_measured():
    (one,) = correct([judged(primary(), CLEARLY, [])])
    assert (one.verdict, one.not_made) == (HOLDS_SO_FAR, 1)
    assert [cell.verdict for cell in one.cells] == [HOLDS, NOT_MEASURED]


def test_cells_that_the_paper_has_no_number_for_are_left_out():
    table = cells(CLEARLY, NOTHING, published=(1.0, None))
    assert judge(claim(), table).verdict == UNDECIDED
    one = judge(claim(), table, printed=True)
    assert (one.verdict, one.left_out, len(one.effects)) == (HOLDS, 1, 1)


# --- looks ----------------------------------------------------------------------------------------

TWELVE = [2.0, 3.1, 2.5, 1.4, 2.9, 2.2, 3.0, 1.9, 2.6, 2.4, -90.0, 90.0]


def test_nothing_is_decided_before_the_first_look():
    one = judged(claim(), TWELVE[:4], looks=[5, 10, 20])
    assert p_of(TWELVE[:4]) < 0.01
    assert (one.verdict, one.p.smallest) == (UNDECIDED, 1.0)


def test_a_look_needs_more_than_a_single_test():
    """At 5 of 20 seeds p must be below 1.5e-5, at 10 below 0.003."""
    assert 1.5e-5 < p_of(TWELVE[:5]) < 0.05
    assert judged(claim(), TWELVE[:5], looks=[5, 10, 20]).verdict == UNDECIDED
    assert p_of(TWELVE[:10]) < 0.003
    assert judged(claim(), TWELVE[:10], looks=[5, 10, 20]).verdict == HOLDS


def test_between_looks_the_seeds_of_the_earlier_one_count():
    one = judged(claim(), TWELVE, looks=[5, 10, 20])
    assert one.effects[0].measured.n == 10
    assert one == judged(claim(), TWELVE, looks=[5, 10, 20])
    assert one.effects[0].values == pytest.approx(TWELVE[:10])
