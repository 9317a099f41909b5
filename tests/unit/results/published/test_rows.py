from pathlib import Path

import pytest

from fedstage.errors import FedstageError
from fedstage.results.published.rows import HEADER, load_papers, load_rows

FOLDER = Path(__file__).parents[4] / "workflow/papers"
RECIPE = "table2,cifar10,1.0,resnet20,fedsdd,K=4;R=1,top1_accuracy,percent,89.06,0.19,3"


def written(folder, *lines, header=None):
    path = folder / "numbers.csv"
    path.write_text("\n".join([header or ",".join(HEADER), *lines]) + "\n")
    return folder


def test_a_line_becomes_a_number_with_its_keys(tmp_path):
    (row,) = load_rows(written(tmp_path, RECIPE))
    assert (row.table, row.metric) == ("table2", "top1_accuracy")
    assert (row.value, row.std, row.seeds) == (89.06, 0.19, 3)
    assert row.keys == {
        "dataset": "cifar10", "partition_alpha": "1", "model": "resnet20", "method": "fedsdd",
        "K": "4", "R": "1",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (RECIPE.replace("89.06", "high"), "line 2: value = 'high': must be a number"),
        (RECIPE + ",1", "line 2: 12 columns: must be 11"),
        (RECIPE.replace("R=1", "R"), r"line 2: setting = 'R': must be key=value"),
        (RECIPE.replace("R=1", "model=x"), "line 2: setting = 'model=x'"),
        (RECIPE.replace(",3", ",three"), "line 2: n_seeds = 'three': must be a number"),
    ],
)
def test_a_faulty_line_is_named(tmp_path, line, told):
    with pytest.raises(FedstageError, match=rf"numbers\.csv: {told}"):
        load_rows(written(tmp_path, line))


# --- the shipped files ----------------------------------------------------------------------------

PAPERS = load_papers(FOLDER)


def test_every_file_has_its_paper_and_every_paper_its_file():
    assert {path.parent.name for path in FOLDER.glob("*/numbers.csv")} == PAPERS.keys()
    assert PAPERS["fedsdd"].label == "FedSDD"


@pytest.mark.parametrize("paper", PAPERS)
def test_no_number_is_there_twice(paper):
    rows = load_rows(FOLDER / paper)
    keys = {(row.table, row.metric, *sorted(row.keys.items())) for row in rows}
    assert len(keys) == len(rows) > 10


def test_both_papers_agree_on_what_they_share():
    """FedEED and FedSDD are two write-ups of the same experiments."""
    tables = {"fedeed": "table4", "fedsdd": "table2"}
    values = {
        paper: {
            tuple(
                sorted((key, text.replace("fedeed", "fedsdd")) for key, text in row.keys.items())
            ): row.value
            for row in load_rows(FOLDER / paper)
            if row.table == table
        }
        for paper, table in tables.items()
    }
    assert values["fedeed"] == values["fedsdd"]
    assert len(values["fedsdd"]) == 84
