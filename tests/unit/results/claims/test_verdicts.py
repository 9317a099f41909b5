import pytest

from fedstage.results.claims.comparisons import Cell
from fedstage.results.claims.effects import CONTRADICTED, HOLDS, NOT_MEASURED, UNDECIDED
from fedstage.results.claims.verdicts import HOLDS_SO_FAR, judge
from fedstage.settings.claims import Claim

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
        ([FAR_ABOVE, NONE], HOLDS_SO_FAR),
        ([NONE, NONE], NOT_MEASURED),
        ([NONE, FAR_BELOW], CONTRADICTED),
        ([], NOT_MEASURED),
    ],
)
def test_a_claim_about_all_holds_only_in_all(values, whole):
    assert at_alphas(*values).verdict == whole


def test_comparisons_that_only_the_paper_makes_are_missing():
    some = at_alphas(FAR_ABOVE, FAR_ABOVE, claimed=36)
    assert (some.verdict, some.not_made, len(some.made)) == (HOLDS_SO_FAR, 34, 2)
    every = at_alphas(FAR_ABOVE, FAR_ABOVE, claimed=2)
    assert (every.verdict, every.not_made) == (HOLDS, 0)
    # A smaller scale may have more values on an axis than the paper.
    assert at_alphas(FAR_ABOVE, FAR_ABOVE, claimed=1).not_made == 0
    mean = judge(claim(**ABOVE, quantifier="mean"), mean_cells(), claimed=5)
    assert mean.not_made == 3


def test_a_claim_holds_with_the_p_value_of_its_weakest_comparison():
    strong, weak = (at_alphas(values) for values in (FAR_ABOVE, NOISY_ABOVE))
    assert strong.p.holds < 0.01 < weak.p.holds
    assert at_alphas(FAR_ABOVE, NOISY_ABOVE).p.holds == weak.p.holds


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
