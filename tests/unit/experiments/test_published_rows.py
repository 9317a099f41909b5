from pathlib import Path

import pytest

from fedstage.errors import FedstageError
from fedstage.experiments.published_rows import HEADER, Row, counterparts, load_papers, load_rows
from fedstage.settings.scores import Published
from fedstage.settings.validation import validate

FOLDER = Path(__file__).parents[3] / "workflow/papers"
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
for of_several in ("aggregated_ensembles", "foundation", "one_shot"):
    PAPERS.pop(of_several)


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


# --- matching -------------------------------------------------------------------------------------


def row(table="table2", metric="top1_accuracy", value=1.0, **keys):
    return Row(table, metric, {key: str(text) for key, text in keys.items()}, value, 0.5, 3)


#: FedAvg and FedSDD with one or two checkpoints, at two alphas, on CIFAR-10.
ROWS = [
    row(method=method, partition_alpha=alpha, dataset="cifar10", value=value, **settings)
    for value, (method, alpha, settings) in enumerate(
        (method, alpha, settings)
        for method, settings in (("fedavg", {}), ("fedsdd", {"R": 1}), ("fedsdd", {"R": 2}))
        for alpha in ("1", "0.1")
    )
] + [row("table3", value=100.0, method="fedavg"), row(metric="seconds", value=7.0, method="fedavg")]
MATCH = {"method": {"two": {"method": "fedsdd", "R": 2}, "own": None}}


def found(points, match=MATCH, **settings):
    raw = {"paper": "fedsdd", "table": "table2", "match": match, **settings}
    published = validate(Published, raw, "here")
    rows = counterparts("e/mini: table", published, points, ROWS)
    return [None if one is None else one.value for one in rows]


def point(method="fedavg", alpha=1.0, seed=0, **more):
    return {"method": method, "partition.alpha": alpha, "seed": seed, **more}


OWN_DATA = {**MATCH, "data": {"digits": {"dataset": "cifar10"}}}
IN_FULL = {"data": {"digits test 200": None, "digits": {"dataset": "cifar10"}}}
ALPHAS = {"partition.alpha": {0.5: {"partition_alpha": 0.1}, 10: None}}
#: What is found by a rule: points, settings of the counterpart, and the numbers of the points.
FOUND = {
    "axes with columns of their own need no match": ([point(alpha=0.1), point()], {}, [1, 0]),
    "a value may be several columns": ([point("two", 0.1)], {}, [5]),
    "seeds have the same number": (
        [point("two", 0.1, 0), point("two", 0.1, 1), point("two", 1.0, 0)], {}, [5, 5, 4],
    ),
    "null is nothing published": ([point("own"), point("fedavg")], {}, [None, 0]),
    "nor is an added method, or value": (
        [point("feddf"), point(), point(alpha=0.5), point(k=3)], {"match": {"k": {2: {"R": 1}}}},
        [None, 0, None, None],
    ),
    "an axis may have the values of another column": (
        [point("fedsdd", 1.0, **{"ensemble.checkpoints": r}) for r in (2, 1)],
        {"axes": {"ensemble.checkpoints": "R"}}, [4, 2],
    ),
    "an axis that the paper lacks has no say": (
        [point(**{"client.learning_rate": rate}) for rate in (0.1, 0.2)], {}, [0, 0],
    ),
    "what all cells have in common": (
        [{"method": "two", "seed": 0}], {"where": {"partition_alpha": 0.1}}, [5],
    ),
    "an axis goes before what is in common": (
        [point("two", 0.1)], {"where": {"partition_alpha": 1.0, "R": 1}}, [5],
    ),
    "choices with settings match by their name": ([point(data="cifar10 train_size 5")], {}, [0]),
    "or as a match has it": ([point(data="digits test 200")], {"match": OWN_DATA}, [0]),
    "a value in full goes before its name": (
        [point(data="digits test 200"), point(data="digits")], {"match": IN_FULL}, [None, 0],
    ),
    "numbers may be keys of a match": (
        [point(alpha=alpha) for alpha in (0.5, 10, 10.0)], {"match": ALPHAS}, [1, None, None],
    ),
    "another metric": ([{"method": "fedavg", "seed": 0}], {"metric": "seconds"}, [7]),
}  # fmt: skip


@pytest.mark.parametrize(("points", "settings", "numbers"), FOUND.values(), ids=FOUND)
def test_each_point_has_its_number(points, settings, numbers):
    assert found(points, **settings) == numbers


# --- errors ---------------------------------------------------------------------------------------


def refused(points, **settings):
    with pytest.raises(FedstageError) as caught:
        found(points, **settings)
    message = str(caught.value)
    assert message.startswith("e/mini: table.published")
    assert "\n" not in message
    return message


def test_what_a_run_has_beside_its_axes_tells_rows_apart():
    published = validate(Published, {"paper": "fedsdd", "table": "table2"}, "here")
    known = [{"partition_alpha": "0.1", "dataset": "cifar10"}]
    (row,) = counterparts("e", published, [{"method": "fedavg"}], ROWS, known)
    assert row.value == 1


def test_a_cell_with_two_rows_names_what_would_tell_them_apart():
    told = refused([point("fedsdd")])
    assert "2 rows of fedsdd, table2, have" in told
    assert told.endswith("name one by R")


def test_unknown_table_or_metric():
    told = refused([point()], table="table9")
    assert told.endswith(".table = 'table9': use one of table2, table3; did you mean 'table3'?")
    assert refused([point()], metric="auc").endswith("'auc': use one of top1_accuracy, seconds")
