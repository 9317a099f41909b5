"""What is forgotten, measured in real runs."""

import csv

import pytest
import yaml

from fedstage.storage.tables import load_table
from fedstage.storage.tensors import load_tensors

pytestmark = pytest.mark.workflow


def configured(project, **changes):
    """Let the experiment of a working folder measure what is forgotten, and claim something."""
    project.configure(rounds=3, evaluate_every=3, **changes)
    path = project.path / "config.yaml"
    config = yaml.safe_load(path.read_text())
    config["experiments"]["tiny"]["results"] = ["retention"]
    about = {"text": "T.", "place": "P", "experiment": "tiny"}
    one, other = {"method": "fedsdd"}, {"method": "fedavg"}
    config["claims"] = [
        about | {"id": name, "metric": name, "less": one, "than": other}
        for name in ("forget_score", "fluctuation", "distance")
    ]
    path.write_text(yaml.safe_dump(config))
    return project


def rows(project, name):
    return list(csv.DictReader((project.path / name).open()))


@pytest.fixture(scope="module")
def made(new_project):
    project = configured(new_project(), methods=["fedavg", "fedsdd"])
    assert project.make().jobs["retention"] == 2
    return project


def test_measures_are_those_of_the_models_that_are_there(made):
    for path in made.files("results/training/*/metrics/retention/*.parquet"):
        table = load_table(made.path / path).to_pylist()
        assert [row["round"] for row in table] == [1, 2, 3]
        for row in table[1:]:
            assert row["forget_score"] == pytest.approx(row["current"] - row["previous"])
            assert row["retained"] + row["gained"] <= table[row["round"] - 2]["samples"]
        (scores,) = made.files(f"{path.parents[1]}/global_model-test/*.parquet")
        (last,) = load_table(made.path / scores).to_pylist()
        assert table[-1]["top1_accuracy"] == pytest.approx(last["top1_accuracy"])
        right = load_tensors(made.path / path.with_suffix(".safetensors"))[0]["end"]
        assert 100 * right.double().mean() == pytest.approx(last["top1_accuracy"])
        rounds = (made.path / path).parents[2]
        (distances,) = made.files(f"{rounds.relative_to(made.path)}/round_0003/*0/participants.*")
        known = load_table(made.path / distances)["distance"].to_pylist()
        assert min(known) > 0


def test_the_table_and_the_claims_are_of_them(made):
    found = {row["method"]: row for row in rows(made, "results/retention/tiny/default.csv")}
    assert found.keys() == {"fedavg", "fedsdd"}
    claims = {row["claim"]: row for row in rows(made, "results/claims/tiny/default.csv")}
    for name in ("forget_score", "fluctuation", "distance"):
        difference = float(found["fedsdd"][name]) - float(found["fedavg"][name])
        assert float(claims[name]["mean"]) == pytest.approx(difference)
    assert found["fedsdd"]["overlap"] == found["fedavg"]["overlap"]
    (figure,) = made.files("results/figures/tiny/default_*.png")
    assert figure.name == "default_retention.png"
    assert not made.plan().jobs
