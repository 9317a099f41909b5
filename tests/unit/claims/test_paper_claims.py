"""The shipped claims, on the cells of the tables that they are about, in the published numbers."""

from itertools import product
from pathlib import Path

import pytest
import yaml

from fedstage.claims.comparisons import Cell
from fedstage.claims.library import check_claims, load_claims
from fedstage.claims.verdicts import NOT_MEASURED, judge
from fedstage.experiments import Table
from fedstage.published.matching import counterparts
from fedstage.published.rows import load_rows
from fedstage.validation import validate

UNIT = Path(__file__).parents[1]
WORKFLOW = UNIT.parents[1] / "workflow"
TABLES = yaml.safe_load((UNIT / "published/paper_tables.yaml").read_text())
CLAIMS = load_claims([], WORKFLOW / "claims")
POINTS = {
    name: [dict(zip(one["grid"], values, strict=True)) for values in product(*one["grid"].values())]
    for name, one in TABLES.items()
}
#: Claims that the paper's own means do not bear out: in how many comparisons they do, of how many.
NOT_IN_THE_NUMBERS = {
    "designated_has_the_best_main_model": (5, 6),
    "more_models_with_20": (1, 2),
}


def cells(name):
    published = validate(Table, TABLES[name]["table"], name).published
    rows = load_rows(WORKFLOW / f"published/{published.paper}.csv")
    found = counterparts(name, published, POINTS[name], rows)
    return [
        Cell(point, published=row.value if row else None)
        for point, row in zip(POINTS[name], found, strict=True)
    ]


def test_every_claim_is_about_cells_that_its_table_has():
    assert {one.claim.experiment for one in CLAIMS} == TABLES.keys()
    check_claims(CLAIMS, POINTS)


@pytest.mark.parametrize("one", CLAIMS, ids=lambda one: f"{one.claim.experiment}-{one.claim.id}")
def test_what_the_published_numbers_say(one):
    judgement = judge(one.claim, cells(one.claim.experiment))
    assert judgement.verdict == NOT_MEASURED
    known = [effect.published_holds for effect in judgement.effects]
    if one.claim.id == "above_fedbe":
        assert set(known) == {None}
    else:
        expected = NOT_IN_THE_NUMBERS.get(one.claim.id, (len(known), len(known)))
        assert (sum(known), len(known)) == expected
        assert judgement.published_holds == (expected[0] == expected[1])
