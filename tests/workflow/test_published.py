"""An experiment beside published numbers, with claims: what is made of it."""

import json
import shutil

import pandas as pd
import pyarrow.parquet as pq
import pytest
import yaml

pytestmark = pytest.mark.workflow

PUBLISHED = {
    "paper": "fedsdd",
    "table": "table2",
    "where": {"dataset": "cifar10", "model": "resnet20"},
    "match": {"method": {"fedsdd": {"method": "fedsdd", "R": 1}, "linear": None}},
}
CLAIMS = [
    {
        "id": "above_fedavg",
        "text": "FedSDD is more accurate than FedAvg.",
        "place": "Table 2",
        "experiment": "tiny",
        "greater": {"method": "fedsdd"},
        "than": {"method": ["fedavg", "linear"]},
    },
    {
        "id": "sends_as_much",
        "text": "FedSDD's participants send no more than FedAvg's.",
        "place": "Section 3",
        "experiment": "tiny",
        "metric": "bytes_up",
        "ratio": {"method": "fedsdd"},
        "to": {"method": "fedavg"},
        "at_most": 1.01,
    },
]


@pytest.fixture(scope="module")
def compared(new_project):
    """One round with two seeds, published numbers and claims."""
    execution = {"granularity": "segment"}
    methods = ["fedavg", "fedsdd", "linear"]
    results = ["table", "figures"]
    project = new_project().configure(
        rounds=1, methods=methods, execution=execution, results=results
    )
    path = project.path / "config.yaml"
    config = yaml.safe_load(path.read_text())
    experiment = config["experiments"]["tiny"]
    experiment["grid"] |= {"partition.alpha": [1.0, 0.1], "seed": [0, 1]}
    experiment["methods"]["linear"] = {"local": "fedavg", "client": {"learning_rate": 0.1}}
    axes = {"rows": ["method"], "columns": ["partition.alpha"]}
    experiment["table"] = axes | {"over": "partition.alpha"}
    experiment["table"]["published"] = PUBLISHED
    experiment["scales"] = {"paper": {}}  # at others the data must be the published ones
    path.write_text(yaml.safe_dump(config | {"claims": CLAIMS, "targets": ["tiny/paper"]}))
    project.make()
    return project


def test_tables_have_measured_and_published_numbers_side_by_side(compared):
    folder = compared.path / "results/tables/tiny"
    table = pd.read_csv(folder / "paper.csv")
    assert list(table["published"].dropna()) == [88.53, 78.72, 89.06, 80.18]
    assert list(table["published_std"].dropna()) == [0.31, 2.31, 0.19, 2.38]
    differences = table["top1_accuracy"] - table["published"]
    pd.testing.assert_series_equal(table["difference"], differences, check_names=False)
    text = (folder / "paper.md").read_text()
    (line,) = [line for line in text.splitlines() if line.startswith("| FedSDD")]
    assert "89.06 ± 0.19" in line
    assert "**Published**: FedSDD, Table 2" in text
    compared.make("results/tables/tiny/paper.tex")
    assert r"89.06 $\pm$ 0.19" in (folder / "paper.tex").read_text()


def test_claims_are_judged(compared):
    folder = compared.path / "results/claims/tiny"
    compared.make("results/claims/tiny/paper.parquet")
    rows = pq.read_table(folder / "paper.parquet").to_pylist()
    above = [row for row in rows if row["claim"] == "above_fedavg"]
    assert [(row["published_holds"], row["seeds"]) for row in above] == [
        (True, 2), (None, 2), (True, 2), (None, 2),
    ]  # fmt: skip
    sends = [row for row in rows if row["claim"] == "sends_as_much"]
    assert {(row["mean"], row["verdict"], row["published"]) for row in sends} == {
        (1.0, "holds", None)
    }
    text = (folder / "paper.md").read_text()
    assert "| above_fedavg " in text
    assert len(pd.read_csv(folder / "paper.csv")) == len(rows)
    assert compared.make().jobs == {}


def test_another_claim_or_match_makes_no_training_anew(compared, tmp_path):
    shutil.copytree(compared.path, tmp_path / "copy", symlinks=True)
    project = type(compared)(tmp_path / "copy")
    path = project.path / "config.yaml"
    config = yaml.safe_load(path.read_text())
    config["claims"][0]["than"] = {"method": "fedavg"}
    path.write_text(yaml.safe_dump(config))
    assert project.plan().jobs == {"table": 1, "all": 1}
    config["experiments"]["tiny"]["table"]["published"]["where"]["model"] = "wrn16_2"
    path.write_text(yaml.safe_dump(config))
    # Tables and claims; accuracy, published and over, and the partition of the same runs.
    assert project.plan().jobs == {"scores": 1, "table": 2, "figure": 4, "all": 1}


def test_claims_are_on_file_as_data(compared):
    definitions = json.loads(
        (compared.path / "results/descriptions/tiny/paper.claims.json").read_text()
    )
    assert definitions["claims"] == CLAIMS
