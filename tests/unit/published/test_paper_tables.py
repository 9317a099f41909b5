"""Every number of FedEED's and FedSDD's tables is found from the axes of an experiment."""

from itertools import product
from pathlib import Path

import pytest
import yaml

from fedstage.experiments import Table
from fedstage.published.matching import counterparts
from fedstage.published.rows import load_rows
from fedstage.validation import validate

HERE = Path(__file__).parent
PUBLISHED = HERE.parents[2] / "workflow/published"
TABLES = yaml.safe_load((HERE / "paper_tables.yaml").read_text())


def points(grid):
    return [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]


@pytest.mark.parametrize("name", TABLES)
def test_each_cell_has_its_number_and_each_number_its_cell(name):
    published = validate(Table, TABLES[name]["table"], name).published
    rows = load_rows(PUBLISHED / f"{published.paper}.csv")
    grid = points(TABLES[name]["grid"])
    found = counterparts(name, published, grid, rows)
    alone = {point["method"] for point, row in zip(grid, found, strict=True) if row is None}
    assert alone <= {"fedbe"}
    table = [row for row in rows if row.table == published.table]
    assert {id(row) for row in found if row} == {id(row) for row in table}
    assert {row.metric for row in table} == {published.metric}


def test_all_tables_of_accuracies_are_tried():
    tried = {
        (table["published"]["paper"], table["published"]["table"])
        for table in (one["table"] for one in TABLES.values())
    }
    for paper in ("fedeed", "fedsdd"):
        rows = load_rows(PUBLISHED / f"{paper}.csv")
        assert {(paper, row.table) for row in rows if row.metric == "top1_accuracy"} <= tried
