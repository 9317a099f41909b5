import pytest
from scipy import stats

from fedstage.outcomes.comparisons import Cell
from fedstage.results.claims.verdicts import (
    CONTRADICTED,
    HOLDS,
    NIL,
    NOT_MEASURED,
    UNDECIDED,
    judge,
    p_of_verdict,
)
from fedstage.settings.scores import Claim

ABOVE = {"greater": {"method": "a"}, "than": {"method": "b"}}
BELOW = {"less": {"method": "a"}, "than": {"method": "b"}}
AT_MOST = {"ratio": {"method": "a"}, "to": {"method": "b"}, "at_most": 1.1}
AT_LEAST = {"ratio": {"method": "a"}, "to": {"method": "b"}, "at_least": 1.5}

BETWEEN = AT_MOST | {"at_least": 3.6, "at_most": 4.3}
CLOSE = {"difference": {"method": "a"}, "to": {"method": "b"}, "at_least": -2.0, "at_most": 0.0}
VALUE = {"value": {"method": "a"}, "at_least": 3.6, "at_most": 4.3}


def claim(**form):
    return Claim(id="i", text="t", place="p", experiment="e", **form)


def cell(method, values, published=None, **axes):
    return Cell({"method": method, **axes}, dict(enumerate(values)), published)


def judged(one, other, form=ABOVE, published=(None, None)):
    cells = [cell("a", one, published[0]), cell("b", other, published[1])]
    return judge(claim(**form), cells)


FAR_ABOVE = ([70.0, 72.0, 71.0], [60.0, 61.0, 61.5])
FAR_BELOW = FAR_ABOVE[::-1]
ABOUT_EQUAL = ([60.0, 63.0, 61.0], [61.0, 61.0, 61.5])


@pytest.mark.parametrize(
    ("values", "form", "verdict"),
    [
        (FAR_ABOVE, ABOVE, HOLDS),
        (FAR_BELOW, ABOVE, CONTRADICTED),
        (ABOUT_EQUAL, ABOVE, UNDECIDED),
        (FAR_ABOVE, BELOW, CONTRADICTED),
        (FAR_BELOW, BELOW, HOLDS),
        (([100.0, 101.0], [100.0, 100.0]), AT_MOST, HOLDS),
        (([120.0, 121.0], [100.0, 100.0]), AT_MOST, CONTRADICTED),
        (([105.0, 115.0], [100.0, 100.0]), AT_MOST, UNDECIDED),
        (([200.0, 201.0], [100.0, 100.0]), AT_LEAST, HOLDS),
        (([120.0, 121.0], [100.0, 100.0]), AT_LEAST, CONTRADICTED),
        (([400.0, 400.0], [100.0, 100.0]), BETWEEN, HOLDS),
        (([440.0, 440.0], [100.0, 100.0]), BETWEEN, CONTRADICTED),
        (([350.0, 350.0], [100.0, 100.0]), BETWEEN, CONTRADICTED),
        (([430.0, 431.0], [100.0, 100.0]), BETWEEN, UNDECIDED),
        (([59.5, 59.5], [61.0, 61.0]), CLOSE, HOLDS),
        (([58.5, 58.5], [61.0, 61.0]), CLOSE, CONTRADICTED),
        (([62.0, 62.0], [61.0, 61.0]), CLOSE, CONTRADICTED),
        (([4.0, 4.0], [0.0, 0.0]), VALUE, HOLDS),
        (([4.4, 4.4], [0.0, 0.0]), VALUE, CONTRADICTED),
    ],
)
def test_verdicts(values, form, verdict):
    assert judged(*values, form).verdict == verdict


def test_one_seed_decides_nothing_and_none_is_not_measured():
    (effect,) = judged([90.0], [10.0]).effects
    assert (effect.verdict, effect.measured.mean, effect.measured.n) == (UNDECIDED, 80.0, 1)
    assert judged([], []).verdict == NOT_MEASURED
    assert judge(claim(**ABOVE), []).verdict == NOT_MEASURED


def test_only_seeds_of_both_cells_count():
    cells = [
        Cell({"method": "a"}, {0: 5.0, 1: 7.0, 2: 9.0}),
        Cell({"method": "b"}, {2: 1.0, 1: 1.5}),
    ]
    (effect,) = judge(claim(**ABOVE), cells).effects
    assert (effect.measured.n, effect.measured.mean) == (2, 6.75)


def test_a_difference_of_nothing_is_not_greater_but_at_most():
    same = ([5.0, 6.0], [5.0, 6.0])
    assert judged(*same).verdict == UNDECIDED
    assert judged(*same, AT_MOST | {"at_most": 1.0}).verdict == HOLDS


NOISY_ABOVE = ([62.0, 66.0, 64.5], [60.0, 61.0, 61.5])  # +2, +5, +3: p = 0.066


def at_alphas(*values, claimed=None, form=ABOVE):
    cells = []
    for alpha, (one, other) in enumerate(values):
        cells += [cell("a", one, alpha=alpha), cell("b", other, alpha=alpha)]
    return judge(claim(**form), cells, claimed=claimed)


NONE = ([], [])


@pytest.mark.parametrize(
    ("values", "whole"),
    [
        ([FAR_ABOVE, FAR_ABOVE], HOLDS),
        ([FAR_ABOVE, ABOUT_EQUAL], UNDECIDED),
        ([FAR_ABOVE, ABOUT_EQUAL, FAR_BELOW], CONTRADICTED),
        ([FAR_ABOVE, NONE], HOLDS),
        ([NONE, NONE], NOT_MEASURED),
        ([NONE, FAR_BELOW], CONTRADICTED),
        ([], NOT_MEASURED),
    ],
)
def test_a_claim_about_all_holds_only_in_all(values, whole):
    assert at_alphas(*values).verdict == whole


def test_comparisons_that_only_the_paper_makes_are_counted():
    some = at_alphas(FAR_ABOVE, FAR_ABOVE, claimed=36)
    assert (some.verdict, some.measured, some.total) == (HOLDS, 2, 36)
    # A smaller scale may have more values on an axis than the paper.
    assert at_alphas(FAR_ABOVE, NONE, claimed=1).total == 2


def test_a_claim_holds_with_the_p_value_of_its_weakest_comparison():
    strong, weak = (at_alphas(values) for values in (FAR_ABOVE, NOISY_ABOVE))
    assert strong.p[HOLDS] < 0.01 < weak.p[HOLDS]
    assert at_alphas(FAR_ABOVE, NOISY_ABOVE).p[HOLDS] == weak.p[HOLDS]


def test_one_of_many_comparisons_contradicts_only_beyond_chance():
    slightly = ([60.0, 60.6, 61.2], [61.0, 61.5, 62.3])  # -1, -0.9, -1.1: p = 0.003
    assert at_alphas(slightly).verdict == CONTRADICTED
    assert at_alphas(slightly, *[ABOUT_EQUAL] * 9).verdict == CONTRADICTED
    assert at_alphas(slightly, *[ABOUT_EQUAL] * 19).verdict == UNDECIDED


# --- published numbers ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("published", "form", "holds", "effect"),
    [
        ((80.0, 79.0), ABOVE, True, 1.0),
        ((79.0, 80.0), ABOVE, False, -1.0),
        ((80.0, 80.0), ABOVE, False, 0.0),
        ((79.0, 80.0), BELOW, True, -1.0),
        ((105.0, 100.0), AT_MOST, True, 1.05),
        ((150.0, 120.0), AT_MOST, False, 1.25),
        ((200.0, 100.0), AT_LEAST, True, 2.0),
        ((None, 80.0), ABOVE, None, None),
        ((80.0, None), ABOVE, None, None),
        ((1.0, 0.0), AT_LEAST, None, None),
    ],
)
def test_published_means_say_yes_or_no(published, form, holds, effect):
    judgement = judged(*ABOUT_EQUAL, form, published)
    assert judgement.published_holds is holds
    assert judgement.effects[0].published == (effect if effect is None else pytest.approx(effect))


@pytest.mark.parametrize(
    ("stated", "holds"),
    [((3.6, 4.3), True), ((3.5, 4.0), False), ((4.0, 4.4), False), (None, None)],
)
def test_what_the_text_states_stands_in_for_means_that_are_not_printed(stated, holds):
    judgement = judged(*ABOUT_EQUAL, BETWEEN | {"stated": stated})
    assert judgement.published_holds is holds
    assert judgement.effects[0].published is None
    # Printed means say more.
    assert judged(*ABOUT_EQUAL, BETWEEN | {"stated": stated}, (4.0, 1.0)).published_holds is True
    assert judged(*ABOUT_EQUAL, BETWEEN | {"stated": stated}, (5.0, 1.0)).published_holds is False


def test_a_value_is_judged_cell_by_cell():
    cells = [cell("a", [4.0, 4.0], alpha=1.0), cell("a", [5.0, 5.0], alpha=0.1), cell("b", [9.0])]
    judgement = judge(claim(**VALUE), cells)
    assert [effect.label for effect in judgement.effects] == ["a at alpha = 1", "a at alpha = 0.1"]
    assert [effect.measured.mean for effect in judgement.effects] == [4.0, 5.0]
    assert [effect.verdict for effect in judgement.effects] == [HOLDS, CONTRADICTED]


def two_alphas(published):
    cells = []
    for alpha, (one, other) in zip((1.0, 0.1), published, strict=True):
        cells += [cell("a", [], one, alpha=alpha), cell("b", [], other, alpha=alpha)]
    return judge(claim(**ABOVE), cells)


@pytest.mark.parametrize(
    ("published", "holds"),
    [
        ([(2.0, 1.0), (2.0, 1.0)], True),
        ([(2.0, 1.0), (1.0, 2.0)], False),
        ([(2.0, 1.0), (None, 2.0)], True),
        ([(None, 1.0), (None, 2.0)], None),
    ],
)
def test_published_numbers_of_all_comparisons(published, holds):
    judgement = two_alphas(published)
    assert judgement.published_holds is holds
    assert len(judgement.effects) == 2


# --- averages -------------------------------------------------------------------------------------


def mean_cells():
    return [
        cell("a", [62.0, 63.0, 64.0], 80.0, alpha=1.0),
        cell("b", [60.0, 60.0, 60.0], 70.0, alpha=1.0),
        cell("a", [49.0, 49.5, 50.0], 60.0, alpha=0.1),
        cell("b", [50.0, 50.0, 50.0], 61.0, alpha=0.1),
    ]


def test_a_claim_about_the_mean_averages_comparisons_within_each_seed():
    judgement = judge(claim(**ABOVE, quantifier="mean"), mean_cells())
    (effect,) = judgement.effects
    assert effect.measured.mean == pytest.approx((0.5 + 1.25 + 2.0) / 3)
    assert effect.measured.n == 3
    assert effect.label == "mean of 2"
    assert effect.published == pytest.approx(4.5)
    assert judgement.published_holds
    assert judgement.verdict == UNDECIDED
    assert judge(claim(**ABOVE), mean_cells()).verdict == UNDECIDED


def test_the_mean_needs_seeds_that_all_cells_have():
    cells = mean_cells()
    del cells[2].values[0]
    (effect,) = judge(claim(**ABOVE, quantifier="mean"), cells).effects
    assert effect.measured.n == 2
    assert effect.measured.mean == pytest.approx((1.25 + 2.0) / 2)


def test_a_ratio_to_nothing_does_not_count():
    assert judged([1.0, 2.0], [0.0, 0.0], AT_LEAST).verdict == NOT_MEASURED
    (effect,) = judged([1.0, 2.0, 4.0], [0.0, 1.0, 1.0], AT_LEAST).effects
    assert (effect.measured.n, effect.measured.mean) == (2, 3.0)


def test_a_primary_claim_is_judged_as_its_sentence_says():
    """On every comparison, or on the mean; in the published numbers likewise."""
    strong = ABOVE | {"primary": True, "margin": 1.0}
    every = at_alphas(FAR_ABOVE, ABOUT_EQUAL, NONE, form=strong)
    assert (every.mean, every.effects) == (None, every.comparisons)
    assert every.verdict == UNDECIDED
    one = at_alphas(FAR_ABOVE, ABOUT_EQUAL, NONE, form=strong | {"quantifier": "mean"})
    assert (one.mean.label, one.measured, one.total) == ("mean of 2", 2, 3)
    assert one.effects == [one.mean]
    assert one.mean.values == pytest.approx([4.5, 6.5, 4.5])
    assert (one.verdict, one.p) == (HOLDS, one.mean.p)
    assert [effect.verdict for effect in one.comparisons] == [HOLDS, UNDECIDED, NOT_MEASURED]
    alone = at_alphas(FAR_ABOVE, form=strong | {"quantifier": "mean"})
    assert (alone.mean, alone.effects) == (None, alone.comparisons)
    assert judge(claim(**strong), mean_cells()).published_holds is False
    assert judge(claim(**strong, quantifier="mean"), mean_cells()).published_holds


# --- practically nil ------------------------------------------------------------------------------


def around(*differences, **form):
    return judged([60.0 + d for d in differences], [60.0] * len(differences), ABOVE | form)


def test_a_difference_whose_interval_is_within_the_margin_is_practically_nil():
    slightly = [0.1, 0.2, 0.3]
    (effect,) = around(*slightly, margin=1.0).effects
    assert effect.verdict == NIL
    assert effect.p[NIL] == pytest.approx(2 * stats.ttest_1samp(slightly, 1.0).pvalue / 2)
    assert p_of_verdict(effect.p) == effect.p[NIL]
    end = effect.measured.high
    assert around(*slightly, margin=end + 0.001).verdict == NIL
    assert around(*slightly, margin=end - 0.001).verdict == UNDECIDED
    assert around(*slightly).verdict == UNDECIDED
    # In all comparisons; and on whichever side of 0 it is.
    near = ([60.1, 60.2, 60.3], [60.0] * 3)
    assert at_alphas(near, near, form=ABOVE | {"margin": 1.0}).verdict == NIL
    assert at_alphas(near, NOISY_ABOVE, form=ABOVE | {"margin": 1.0}).verdict == UNDECIDED
    below = [-0.31, -0.30, -0.29]
    assert around(*below).verdict == CONTRADICTED
    assert around(*below, margin=1.0).verdict == NIL


# --- the paper's own tests ------------------------------------------------------------------------


def printed_p(left, right, form=ABOVE):
    cells = [Cell({"method": name}, {}, *one) for name, one in (("a", left), ("b", right))]
    return judge(claim(**form), cells).comparisons[0].published_p


def test_welchs_test_of_printed_numbers():
    """Means 20 and 25, variances 4 and 9 over 5 and 8: t = -3.6037 with 10.87 degrees, 0.0042."""
    known = (20.0, 2.0, 5)
    assert printed_p(known, (25.0, 3.0, 8)) == pytest.approx(0.00420, abs=2e-5)
    for other in ((20.0, None, 5), (20.0, 2.0, None), (20.0, 2.0, 1), (None,)):
        assert printed_p(known, other) is None
    assert printed_p(known, (25.0, 3.0, 8), AT_MOST) is None
    assert printed_p((1.0, 0.0, 3), (1.0, 0.0, 3)) is None  # no p-value
