"""A sweep on validation samples: its figure, and its best values in another experiment."""

import re
import subprocess
import sys

import pytest
import yaml

pytestmark = pytest.mark.workflow

RATES = "client.learning_rate"


@pytest.fixture(scope="module")
def swept(new_project):
    """A finished sweep of two rates over two partitions."""
    project = new_project().configure(role="validation", rounds=1)
    path = project.path / "config.yaml"
    config = yaml.safe_load(path.read_text())
    config["experiments"]["tiny"] |= {
        "grid": {"method": ["fedavg", "fedprox"], "partition.alpha": [0.5, 5.0],
                 RATES: [0.0001, 0.1], "seed": [3]},
        "table": {"rows": ["method"], "columns": ["partition.alpha", RATES], "over": RATES},
        "results": ["figures", "report"],
    }  # fmt: skip
    path.write_text(yaml.safe_dump(config))
    project.make()
    return project


def test_the_sweep_has_a_figure_also_in_the_report(swept):
    assert swept.files("results/figures/tiny/default_over.png")
    (report,) = swept.files("results/report/tiny/default.html")
    text = (swept.path / report).read_text(encoding="utf-8")
    assert re.search(r'<figure aria-label="[^"]* by (?!round)', text)


def test_the_best_values_give_an_experiment_whose_models_are_trained_already(swept):
    command = [sys.executable, "-m", "fedstage.execution.cli", "best", "tiny"]
    done = subprocess.run(command, cwd=swept.path, capture_output=True, text=True, check=True)
    cells = yaml.safe_load(done.stdout)["cells"]
    assert [cell["at"] for cell in cells] == [
        {"method": ["fedavg", "fedprox"], "partition.alpha": [0.5, 5.0]}
    ]
    assert cells[0]["settings"] == {"client": {"learning_rate": 0.1}}
    path = swept.path / "config.yaml"
    config = yaml.safe_load(path.read_text())
    grid = dict(config["experiments"]["tiny"]["grid"])
    del grid[RATES]
    config["experiments"]["chosen"] = config["experiments"]["tiny"] | {
        "base": config["experiments"]["tiny"]["base"] | {"role": "test"},
        "grid": grid,
        "table": {"rows": ["method"], "columns": ["partition.alpha"]},
        "scales": {"default": {"cells": cells}},
    }
    path.write_text(yaml.safe_dump(config | {"targets": ["chosen"]}))
    jobs = swept.plan().jobs
    assert jobs["evaluation"] == 4
    assert "local_training" not in jobs
