"""The shipped claims, on the cells of the tables that they are about, in the published numbers."""

import re
from functools import cache

import pytest
from tests.shared.experiments import WORKFLOW, experiments

from fedstage.experiments.claims import check_claims, load_claims
from fedstage.experiments.published_rows import counterparts, load_rows
from fedstage.results.claims import own_tests
from fedstage.results.comparisons import Cell
from fedstage.results.verdicts import NOT_MEASURED, judge

CLAIMS = load_claims([], WORKFLOW / "papers")
#: Folders of claims about experiments that reproduce no paper's table.
OF_SEVERAL = ("aggregated_ensembles", "benchmarks", "foundation", "one_shot")
NAMES = sorted({one.claim.experiment for one in CLAIMS})


def catalogue_with(name):
    """The catalogue; skips where the experiment of this name needs data that are not there."""
    found, uncounted = experiments()
    if name in uncounted:
        pytest.skip(uncounted[name])
    return found


def points(name, scale="paper"):
    """The cells of an experiment at a scale."""
    runs = catalogue_with(name).runs[name, scale]
    found = [{axis: run.axes[axis] for axis in run.axes if axis != "seed"} for run in runs]
    return [point for number, point in enumerate(found) if point not in found[:number]]


#: Claims that the paper's own means do not bear out: in how many comparisons they do, of how many.
NOT_IN_THE_NUMBERS = {
    "above_all_on_cifar100": (71, 72),
    "above_all_if_heterogeneous": (69, 72),
    "fine_tuning_helps_fedkd": (2, 3),
    "fine_tuning_is_the_better_order": (2, 3),
    "above_compressed_averaging": (8, 9),
    "best_one_shot_method_far_below_fedadam": (0, 3),
    "as_good_as_the_best_client": (3, 4),
    "moon_leads_by_about_a_point": (1, 2),
    "a_third_of_the_parameters_on_texts": (1, 3),
}
#: Claims whose numbers the paper does not print.
UNPRINTED = {
    "teachers_help_more_than_epochs",
    "more_data_helps",
    "matches_averaging_with_much_uneven_data",
    "below_averaging_if_even",
    "decoders_cost_less_than_models",
    "training_the_network_costs_a_fraction",
    "experts_cost_more_than_the_network",
} | {
    one.claim.id
    for one in CLAIMS
    if one.claim.experiment.startswith("bkd_")  # curves only
    and one.claim.experiment
    not in ("bkd_control", "bkd_overlap", "bkd_first_rounds", "bkd_distance")
}


#: What the papers' own means, deviations and seeds find: comparisons as claimed, with p at most
#: 0.05, and after Holm's correction, of how many.
EVIDENCE = {
    ("fedsdd_table2", "above_fedavg"): (36, 17, 2, 36),
    ("fedeed_table4", "above_fedavg"): (36, 17, 2, 36),
    ("fedsdd_table2", "above_feddf"): (36, 26, 5, 36),
    ("fedeed_table4", "above_feddf"): (36, 26, 5, 36),
    ("fens_table11", "above_fedkd_on_all_data"): (9, 9, 5, 9),
    ("fens_table9", "network_beats_static_rules"): (9, 8, 7, 9),
    ("fedet_table2", "above_other_methods_for_mixed_models"): (8, 8, 8, 8),
    ("fedet_table2", "moon_leads_with_less_uneven_clients"): (2, 0, 0, 2),
}


def test_what_the_papers_own_tests_find():
    found = {}
    for one in CLAIMS:
        key = one.claim.experiment, one.claim.id
        if key in EVIDENCE:
            text = own_tests(judge(one.claim, cells(key[0])))
            claimed, tested, after = map(int, re.findall(r"\d+(?= (?:of|as|significant))", text))
            found[key] = claimed, after, tested
    assert found == {key: (one[0], *one[2:]) for key, one in EVIDENCE.items()}


#: Of each paper: how many primary claims it has, and their margins.
PRIMARY = {
    "aggregated_ensembles": (3, {1.0}),
    "bkd": (4, {0.5, None}),
    "fedeed": (4, {1.0}),
    "fedet": (4, {1.0, 0.5, None}),
    "fedsdd": (5, {1.0, None}),
    "fens": (3, {1.0, None}),
    "foundation": (5, {0.5, None}),
    "one_shot": (5, {1.0}),
}


def test_the_primary_claims_of_each_paper_are_declared():
    found = {}
    for paper in sorted({one.paper for one in CLAIMS} - {"benchmarks"}):
        primary = [one for one in CLAIMS if one.paper == paper and one.claim.primary]
        margins = {one.claim.margin for one in primary}
        found[paper] = len(primary), margins
    assert found == PRIMARY


def test_a_claim_is_judged_on_an_average_where_its_sentence_says_so():
    wrong = [
        one.place
        for one in CLAIMS
        if bool(re.search(r"\bon average\b", one.claim.text)) != (one.claim.quantifier == "mean")
    ]
    assert not wrong


@cache
def cells(name, metric=None):
    published = catalogue_with(name).experiments[name].table.published
    if published is None:
        return [Cell(point) for point in points(name)]
    rows = load_rows(WORKFLOW / f"papers/{published.paper}")
    published = published.model_copy(update={"metric": metric or published.metric})
    if published.metric not in {row.metric for row in rows if row.table == published.table}:
        return [Cell(point) for point in points(name)]
    found = counterparts(name, published, points(name), rows)
    return [
        Cell(point, {}, row.value, row.std, row.seeds) if row else Cell(point)
        for point, row in zip(points(name), found, strict=True)
    ]


def test_claims_about_time_are_about_the_seconds_that_distillation_adds():
    table = catalogue_with("fedsdd_table3").experiments["fedsdd_table3"].table
    assert table.metric == "added_s"
    values = [cell.published for cell in cells("fedsdd_table3")]
    assert values == [None] * 3 + [223.6, 337.0, 447.1, 174.1, 177.1, 175.5] + [None] * 6


def test_the_ratios_of_parameters_are_those_of_each_printed_cell():
    ratios = {}
    for one in CLAIMS:
        if one.claim.metric == "params_to_reach":
            judgement = judge(one.claim, cells(one.claim.experiment, one.claim.metric))
            ratios[one.claim.id] = [round(effect.published, 2) for effect in judgement.comparisons]
    assert sorted(ratios["a_third_of_the_parameters"]) == sorted(
        [2.77, 2.69, 2.62, 2.88, 2.81, 2.77, 2.55, 2.90]
    )
    assert ratios["a_third_of_the_parameters_on_texts"] == [2.78, 2.44, 2.11]


def test_every_claim_is_about_cells_that_its_table_has():
    for name in NAMES:
        catalogue = catalogue_with(name)
        every = [p for key in catalogue.runs if key[0] == name for p in points(*key)]
        claims = [one for one in CLAIMS if one.claim.experiment == name]
        check_claims(claims, catalogue.experiments[name].results, every)


@pytest.mark.parametrize(
    "one",
    [one for one in CLAIMS if one.paper not in OF_SEVERAL],
    ids=lambda one: f"{one.claim.experiment}-{one.claim.id}",
)
def test_what_the_published_numbers_say(one):
    judgement = judge(one.claim, cells(one.claim.experiment, one.claim.metric))
    assert judgement.verdict == NOT_MEASURED
    known = [effect.published_holds for effect in judgement.effects]
    if one.claim.id in UNPRINTED:
        assert set(known) == {judgement.published_holds} == {None}
        return
    expected = NOT_IN_THE_NUMBERS.get(one.claim.id, (len(known), len(known)))
    assert (sum(known), len(known)) == expected
    assert judgement.published_holds == (expected[0] == expected[1])
