"""The shipped claims, on the cells of the tables that they are about, in the published numbers."""

from pathlib import Path

import pytest

from fedstage.experiments.catalogue import load_catalogue
from fedstage.results.claims.comparisons import Cell
from fedstage.results.claims.library import check_claims, load_claims
from fedstage.results.claims.verdicts import NOT_MEASURED, judge
from fedstage.results.published.matching import counterparts
from fedstage.results.published.rows import load_rows
from fedstage.storage.yaml_files import load_yaml

WORKFLOW = Path(__file__).parents[4] / "workflow"
CONFIG = load_yaml(WORKFLOW.parent / "config.yaml") | {"targets": ["fedsdd_table2/paper"]}
CATALOGUE = load_catalogue(CONFIG, WORKFLOW)
CLAIMS = load_claims([], WORKFLOW / "papers")


def points(name, scale="paper"):
    """The cells of an experiment at a scale."""
    runs = CATALOGUE.runs[name, scale]
    found = [{axis: run.axes[axis] for axis in run.axes if axis != "seed"} for run in runs]
    return [point for number, point in enumerate(found) if point not in found[:number]]


POINTS = {name: points(name) for name in sorted({one.claim.experiment for one in CLAIMS})}
#: Claims that the paper's own means do not bear out: in how many comparisons they do, of how many.
NOT_IN_THE_NUMBERS = {
    "designated_has_the_best_main_model": (5, 6),
    "more_models_with_20": (1, 2),
    "fine_tuning_helps_fedkd": (2, 3),
    "as_good_as_the_best_client": (3, 4),
}
#: Claims whose numbers the paper does not print.
UNPRINTED = {"int8_loses_nothing"} | {
    one.claim.id
    for one in CLAIMS
    if one.claim.experiment.startswith(("bkd_", "benchmark_"))  # curves only, or of no table
    and one.claim.experiment not in ("bkd_control", "bkd_overlap")
}


def cells(name):
    published = CATALOGUE.experiments[name].table.published
    if published is None:
        return [Cell(point) for point in POINTS[name]]
    rows = load_rows(WORKFLOW / f"papers/{published.paper}")
    found = counterparts(name, published, POINTS[name], rows)
    return [
        Cell(point, published=row.value if row else None)
        for point, row in zip(POINTS[name], found, strict=True)
    ]


def test_claims_about_time_are_about_the_seconds_that_distillation_adds():
    table = CATALOGUE.experiments["fedsdd_table3"].table
    assert table.metric == "added_s"
    values = [cell.published for cell in cells("fedsdd_table3")]
    assert values == [None] * 3 + [223.6, 337.0, 447.1, 174.1, 177.1, 175.5]


def test_every_claim_is_about_cells_that_its_table_has():
    every = {
        name: [p for key in CATALOGUE.runs if key[0] == name for p in points(*key)]
        for name in POINTS
    }
    check_claims(CLAIMS, every)


@pytest.mark.parametrize("one", CLAIMS, ids=lambda one: f"{one.claim.experiment}-{one.claim.id}")
def test_what_the_published_numbers_say(one):
    table = cells(one.claim.experiment)
    if one.claim.metric is not None:  # the table's numbers are of another one
        table = [Cell(cell.axes) for cell in table]
    judgement = judge(one.claim, table)
    assert judgement.verdict == NOT_MEASURED
    known = [effect.published_holds for effect in judgement.effects]
    if one.claim.id in UNPRINTED:
        assert set(known) == {judgement.published_holds} == {None}
        return
    expected = NOT_IN_THE_NUMBERS.get(one.claim.id, (len(known), len(known)))
    assert (sum(known), len(known)) == expected
    assert judgement.published_holds == (expected[0] == expected[1])
