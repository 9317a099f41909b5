"""From Python: `fedstage.run` and the page about it, which is also a notebook."""

import json
import runpy
import subprocess
import sys

import pytest
import torch
import yaml
from safetensors.torch import save_file

import fedstage
from fedstage import results
from fedstage.errors import FedstageError
from fedstage.results.tidy import ORIGIN

from .conftest import REPOSITORY, Project, environment

PAGE = REPOSITORY / "workflow/docs/coming_from_pytorch.md"
#: Runs cells of a notebook as a kernel does: in `__main__`, whose code is in no file.
KERNEL = """
import json, linecache, subprocess, sys
from pathlib import Path
for number, cell in enumerate(json.load(open(sys.argv.pop(1)))):
    name = f"<cell {number}>"
    if cell.startswith("%%writefile"):
        head, _, text = cell.partition("\\n")
        Path(head.split()[1]).write_text(text)
    elif cell.startswith("%%bash"):
        subprocess.run(["bash", "-e", "-c", cell.partition("\\n")[2]], check=True)
    else:
        linecache.cache[name] = (len(cell), None, cell.splitlines(keepends=True), name)
        exec(compile(cell, name, "exec"), globals())
"""
SCRIPT = """
import sys

import torch
from sklearn.datasets import load_digits
from torch import nn

import fedstage

HIDDEN = 12


class Net(nn.Module):
    def __init__(self, shape, classes):
        super().__init__()
        layers = nn.Flatten(), nn.Linear(shape.numel(), HIDDEN), nn.ReLU()
        self.layers = nn.Sequential(*layers, nn.Linear(HIDDEN, classes))

    def forward(self, x):
        return self.layers(x)


def net(shape, classes):
    return Net(torch.Size(shape), classes)


digits = load_digits()
x = torch.tensor(digits.images * 15.9375).byte().unsqueeze(1)
y = torch.tensor(digits.target)
study = fedstage.run(
    model=net,
    clients=[(x[n:1200:2], y[n:1200:2]) for n in range(2)],
    test=(x[1500:], y[1500:]),
    public=x[1200:1500],
    methods=["feddf", "fens"],
    rounds=2,
    seeds=range(int(sys.argv[1])),
    client={"epochs": 1, "learning_rate": 0.1},
    server={"steps": 10},
    folder="study",
    cores=2,
    validation=0.1,
)
torch.save(study.model("feddf", seed=0).state_dict(), "feddf.pt")
print(study.table, study.compare(baseline="feddf"), study.curves)
"""
BY_HAND = """
from math import prod
from typing import Literal
from torch import nn
from fedstage.settings.models import Architecture

class Net(Architecture):
    name: Literal["net"]

class Layers(nn.Module):
    def __init__(self, shape, classes):
        super().__init__()
        layers = nn.Flatten(), nn.Linear(prod(shape), 12), nn.ReLU()
        self.layers = nn.Sequential(*layers, nn.Linear(12, classes))

    def forward(self, x):
        return self.layers(x)

def network(settings, shape, classes):
    return Layers(shape, classes)
"""


def call(folder, *command):
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment(), text=True, timeout=1800,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("python")
    (folder / "script.py").write_text(SCRIPT)
    call(folder, "script.py", "1")
    return folder / "study"


def trained(study):
    """The files of training, each with its time."""
    files = (study / "results/training").rglob("*.safetensors")
    return {str(path.relative_to(study)): path.stat().st_mtime_ns for path in files}


def scores(folder, target="study"):
    frame = results.scores(target, folder=folder)
    frame = frame.drop(columns=["label", *ORIGIN])
    return frame.sort_values(["method", "round", "measure", "evaluated"])


@pytest.mark.workflow
def test_a_study_is_what_is_written_by_hand(study, tmp_path):
    config = yaml.safe_load((study / "config.yaml").read_text())
    experiment = config["experiments"]["study"]
    (tmp_path / "net.py").write_text(BY_HAND)
    x, y = digits()
    order = [sample for client in range(2) for sample in range(client, 1200, 2)]
    owners = torch.tensor([client for client in range(2) for _ in range(600)])
    (tmp_path / "tensors/mine").mkdir(parents=True)
    for name, tensors in {
        "train": {"x": x[order], "y": y[order], "clients": owners},
        "test": {"x": x[1500:].contiguous(), "y": y[1500:].contiguous()},
        "public": {"x": x[1200:1500].contiguous()},
    }.items():
        save_file(tensors, tmp_path / f"tensors/mine/{name}.safetensors")
    experiment["base"] |= {
        "model": "net",
        "data": {"image_tensors": {"folder": "mine", "held_out": 300}},
    }
    config |= {"plugins": ["net.py"], "data_folder": "tensors"}
    config |= {"execution": {"granularity": "segment"}}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
    Project(tmp_path).make()
    assert scores(study).reset_index(drop=True).equals(scores(tmp_path).reset_index(drop=True))


def digits():
    space = {}
    exec(SCRIPT.partition("study =")[0], space)
    return space["x"], space["y"]


@pytest.mark.workflow
def test_one_more_seed_trains_one_more_seed(study):
    before = trained(study)
    output = call(study.parent, "script.py", "2")
    after = trained(study)
    assert {path: after[path] for path in before} == before
    new = after.keys() - before.keys()
    assert len(new) == len(before)
    assert all("seed1" in path for path in new)
    assert "jobs done" in output
    state = torch.load(study.parent / "feddf.pt")
    assert {name: list(value.shape) for name, value in state.items()} == {
        "layers.1.weight": [12, 64], "layers.1.bias": [12],
        "layers.3.weight": [10, 12], "layers.3.bias": [10],
    }  # fmt: skip
    assert "Nothing to be done" in call(study, "-m", "snakemake", "-n")


@pytest.mark.workflow
def test_arguments_that_are_not_valid_are_one_line(tmp_path):
    x, y = digits()
    good = {"model": "mlp", "clients": [(x, y)], "methods": ["fedavg"], "folder": tmp_path / "one"}
    for changes, fault in [
        ({"methods": ["fedavgg"]}, "method = 'fedavgg': unknown"),
        ({"client": {"epoch": 1}}, "client.epoch"),
        ({"model": torch.nn.LayerNorm}, r"must need no arguments, or shape, classes"),
        ({"clients": [(x / 1, y)], "model": "cnn_small"}, "takes images"),
        ({"roundz": 1}, "roundz"),
    ]:
        with pytest.raises(FedstageError, match=fault) as raised:
            fedstage.run(**good | changes)
        assert "\n" not in str(raised.value)
    (tmp_path / "config.yaml").write_text("targets: [mine]\n")
    with pytest.raises(FedstageError, match="has a project of its own"):
        fedstage.run(**good | {"folder": tmp_path})


@pytest.mark.workflow
@pytest.mark.slow
def test_the_notebook_runs(tmp_path):
    notebook = json.loads(PAGE.with_suffix(".ipynb").read_text())
    codes = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert codes.pop(0).startswith("%cd")
    (tmp_path / "cells.json").write_text(json.dumps(codes))
    (tmp_path / "kernel.py").write_text(KERNEL)
    call(tmp_path, "-P", "kernel.py", "cells.json")
    assert {"study", "pretrained", "noisy"} <= {path.name for path in tmp_path.iterdir()}


def test_the_notebook_is_the_page():
    notebook = runpy.run_path(str(REPOSITORY / ".ci/notebook.py"))["notebook"]
    found = PAGE.with_suffix(".ipynb").read_text(encoding="utf-8")
    assert found == notebook(PAGE.read_text(encoding="utf-8")), (
        "call: uv run python .ci/notebook.py"
    )
