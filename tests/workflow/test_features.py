"""Features of a frozen encoder as data: made once, read by methods of all kinds like a table."""

import json
import re
import subprocess
import sys

import pandas as pd
import pytest
import torch
import yaml
from safetensors.torch import save_file
from torch import nn
from torchvision.models import resnet18

from fedstage.storage.tensors import load_tensors

pytestmark = pytest.mark.workflow

METHODS = {
    "fedavg": {"model": "narrow"},
    "feddf": {"model": {"mlp": {"hidden": [8]}}},
    "fens": {"aggregator_fraction": 0.2, "aggregator_training": {"federated": {"rounds": 2}}},
    "fedcgs": {"distillation": {"closed_form": {"shrinkage": 0.2}}},
    "safle": {"student": {"safle": {"group": 2}}},
    "fedpft": {"generator": {"mixture": {"components": 2, "samples": 60}}},
}
HEAD = """
from typing import Literal

from torch import nn

from fedstage.settings.models import Architecture


class Narrow(Architecture):
    samples = ("features",)
    name: Literal["narrow"]


def network(settings, shape, classes):
    return nn.Sequential(nn.Linear(*shape, 5), nn.Tanh(), nn.Linear(5, classes))
"""


def weights(seed):
    torch.manual_seed(seed)
    return resnet18().state_dict()


def samples(count, seed):
    """Images of three classes, of which one channel each is bright."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.arange(count) % 3
    x = torch.randint(0, 99, (count, 3, 8, 8), generator=generator, dtype=torch.uint8)
    x[torch.arange(count), y] += 99
    return {"x": x, "y": y}


@pytest.fixture(scope="module")
def encoded(new_project):
    project = new_project().configure(
        data={
            "features": {
                "of": {"image_tensors": {"folder": "own", "held_out": 15}},
                "encoder": {"torchvision": {"architecture": "resnet18", "weights": "own.pth"}},
                "image_size": 32,
                "numerics": {"device": "cpu"},
            }
        },
        partition="iid",
        clients=2,
        participants=2,
        rounds=1,
        methods=list(METHODS),
    )
    path, data = project.path / "config.yaml", project.path / "data"
    (data / "own").mkdir(parents=True)
    torch.save(weights(0), data / "own.pth")
    for part, count in (("train", 75), ("test", 30)):
        save_file(samples(count, count), data / f"own/{part}.safetensors")
    (project.path / "mine.py").write_text(HEAD)
    config = yaml.safe_load(path.read_text()) | {"data_folder": str(data), "plugins": ["mine.py"]}
    config["experiments"]["tiny"]["methods"] = {
        name: settings for name, settings in METHODS.items() if settings
    }
    path.write_text(yaml.safe_dump(config))
    return project, project.make()


def test_features_are_made_once_by_the_network_before_its_last_layer(encoded):
    project, run = encoded
    assert run.jobs["features"] == 1
    (folder,) = project.path.glob("results/data/image_tensors_features-*")
    info = json.loads((folder / "info.json").read_text())
    assert (info["shape"], info["train"], len(info["encoder"])) == ([512], 60, 64)
    assert not (folder / "parts").exists()
    net = resnet18()
    net.load_state_dict(weights(0))
    net.fc = nn.Identity()
    test = samples(30, 30)
    pixels = nn.functional.interpolate(test["x"] / 255, (32, 32), mode="bilinear", antialias=True)
    mean, std = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    pixels = (pixels - torch.tensor(mean).view(3, 1, 1)) / torch.tensor(std).view(3, 1, 1)
    found, _ = load_tensors(folder / "test.safetensors")
    torch.testing.assert_close(found["images"], net.eval()(pixels), rtol=1e-4, atol=1e-4)
    assert torch.equal(found["labels"], test["y"])


def test_heads_of_all_kinds_train_on_features(encoded):
    project, _ = encoded
    table = pd.read_csv(project.path / "results/tables/tiny/default.csv").set_index("method")
    assert set(table.index) == METHODS.keys()
    assert all(table.loc[["fedcgs", "safle", "fedpft"], "top1_accuracy"] > 60)


def test_another_file_of_weights_makes_features_again(encoded):
    project, _ = encoded
    path = project.path / "data/own.pth"
    torch.save(weights(1), path)
    assert project.plan().jobs["features"] == 1
    (folder,) = project.files("results/data/image_tensors_features-*")
    command = [
        sys.executable,
        "-m",
        "fedstage.execution.cli",
        "why",
        str(folder / "test.safetensors"),
    ]
    told = subprocess.run(command, cwd=project.path, capture_output=True, text=True).stdout
    assert re.search(rf"raw files of {folder.name}\n +\w+, was \w+ +own.pth\n", told), told
    torch.save(weights(0), path)
    assert project.plan().jobs == {}
