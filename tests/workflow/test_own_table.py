"""The page on data, followed literally: a table of one's own, natural clients, names in results."""

import json
import re
import subprocess
from pathlib import Path

import pandas as pd
import pytest
import yaml

pytestmark = pytest.mark.workflow

REPOSITORY = Path(__file__).parents[2]


def blocks(language):
    """Return the blocks of a language in the section on tables, in order."""
    page = (REPOSITORY / "workflow/docs/data.md").read_text()
    section = page.split("## Your own tables\n")[1].split("\n## ")[0]
    return re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)


@pytest.fixture(scope="module")
def patients(new_project):
    """The experiment of the page, of fewer runs, and what was printed when it was made."""
    project = new_project()
    making, _ = blocks("bash")
    subprocess.run(making, shell=True, check=True, cwd=project.path)
    (text,) = blocks("yaml")
    experiment = yaml.safe_load(text)
    experiment["base"] |= {"rounds": 2, "numerics": {"device": "cpu"}}
    experiment["grid"] = {"method": ["fedavg"], "seed": [0]}
    experiment["base"] |= {"validation": 0.2}
    experiment["results"] = ["table", "figures", "clients"]
    config = {"targets": ["patients"], "experiments": {"patients": experiment}}
    (project.path / "config.yaml").write_text(yaml.safe_dump(config))
    run = project.make(FEDSTAGE_DATA=str(project.path / "data"))
    return project, run


def test_each_centre_is_a_client(patients):
    project, run = patients
    assert run.jobs["local_training"] == 2 * 4
    (path,) = project.files("results/data/*/info.json")
    info = json.loads((project.path / path).read_text())
    assert info["client_names"] == ["Basel", "Bern", "Chur", "Geneva"]
    assert info["class_names"] == ["ill", "well"]
    assert info["feature_names"] == [
        "age", "sex=f", "sex=m", "pressure", "smoker=false", "smoker=true",
    ]  # fmt: skip
    assert (info["train"], info["test"], info["constant"]) == (300, 100, [])


def test_each_centre_and_class_has_its_accuracy_by_name(patients):
    project, _ = patients
    table = pd.read_csv(project.path / "results/clients/patients/default.csv")
    own = table[table["of"] == "validation"]
    assert list(own["client_name"]) == ["Basel", "Bern", "Chur", "Geneva"]
    assert own["samples"].sum() == 60
    tested = table[table["of"] == "test"]
    assert list(tested["client_name"]) == ["Basel", "Bern", "Chur", "Geneva"]
    assert list(tested["samples"]) == [25] * 4
    assert "own_mix" not in set(table["of"])
    assert list(table[table["of"] == "class"]["class_name"]) == ["ill", "well"]
    row = pd.read_csv(project.path / "results/tables/patients/default.csv").iloc[0]
    accuracy = row["top1_accuracy"]
    assert row["own_test_mean"] == pytest.approx(tested["accuracy"].mean())
    assert row["own_test_std"] == pytest.approx(tested["accuracy"].std())
    assert "own_mean" not in row
    classes = table[table["of"] == "class"]
    for kind in (classes, tested):
        mean = (kind["accuracy"] * kind["samples"]).sum() / kind["samples"].sum()
        assert mean == pytest.approx(accuracy)
    assert tested["accuracy"].nunique() > 1
    text = (project.path / "results/clients/patients/default.md").read_text()
    assert all(f"| {name} " in text for name in ("Basel", "Bern", "Chur", "Geneva", "ill", "well"))


def test_another_number_of_clients_is_refused_with_the_right_one(patients, new_project):
    made, _ = patients
    project = new_project()
    config = yaml.safe_load((made.path / "config.yaml").read_text())
    config["experiments"]["patients"]["base"]["clients"] = 5
    (project.path / "config.yaml").write_text(yaml.safe_dump(config))
    run = project.call(FEDSTAGE_DATA=str(made.path / "data"))
    assert run.code != 0
    assert "clients = 5: must be 4" in run.output
