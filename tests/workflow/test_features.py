"""Features of a frozen encoder as data: made once, read by methods of all kinds like a table."""

import json

import pandas as pd
import pytest
import torch
import yaml
from torch import nn
from torchvision.models import resnet18

from fedstage.storage.tensors import load_tensors

pytestmark = pytest.mark.workflow

ENCODER = {"torchvision": {"architecture": "resnet18", "weights": "resnet18.pth"}}
METHODS = {
    "fedavg": {},
    "feddf": {"model": {"mlp": {"hidden": [8]}}},
    "other_public": {"like": "feddf", "public": {"digits": {"split_seed": 1, "held_out": 20}}},
    "fens": {"aggregator_fraction": 0.2},
    "ghofl": {},
    "afl": {"distillation": {"closed_form": {"ridge": {"clean": False}}}},
    "fedcgs": {},
    "safle": {},
    "fedpft": {"generator": {"mixture": {"components": 2, "samples": 200}}},
    "my_head": {"like": "fedavg", "model": "narrow"},
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


@pytest.fixture(scope="module")
def encoded(new_project):
    project = new_project().configure(
        data={
            "features": {
                "of": {"digits": {"test": 200, "held_out": 30}},
                "encoder": ENCODER,
                "image_size": 32,
                "numerics": {"device": "cpu"},
            }
        },
        server={"steps": 5, "batch_size": 8, "learning_rate": 0.05},
        participants=2,
        clients=4,
        methods=list(METHODS),
    )
    data = project.path / "data"
    data.mkdir()
    torch.save(weights(0), data / "resnet18.pth")
    (project.path / "mine.py").write_text(HEAD)
    config = yaml.safe_load((project.path / "config.yaml").read_text())
    config["experiments"]["tiny"]["methods"] = {
        name: settings for name, settings in METHODS.items() if settings
    }
    config |= {"data_folder": str(data), "plugins": ["mine.py"]}
    (project.path / "config.yaml").write_text(yaml.safe_dump(config))
    return project, project.make()


def test_features_are_those_of_the_network_before_its_last_layer(encoded):
    project, run = encoded
    assert run.jobs["features"] == 2, "the clients' data set, and the other public one"
    info = json.loads(
        next(project.path.glob("results/data/digits_features-*/info.json")).read_text()
    )
    assert (info["shape"], info["classes"], len(info["encoder"])) == ([512], 10, 64)
    (images,) = [
        load_tensors(path)[0]["images"]
        for path in project.path.glob("results/data/digits-*/test.safetensors")
        if len(load_tensors(path)[0]["images"]) == 200
    ]
    net = resnet18()
    net.load_state_dict(weights(0))
    net.fc = nn.Identity()
    pixels = images[:7].expand(-1, 3, -1, -1) / 255
    pixels = nn.functional.interpolate(pixels, (32, 32), mode="bilinear", antialias=True)
    mean, std = (torch.tensor(values).view(1, 3, 1, 1)
                 for values in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))  # fmt: skip
    expected = net.eval()((pixels - mean) / std)
    found = [
        load_tensors(path)[0]
        for path in project.path.glob("results/data/digits_features-*/test.safetensors")
    ]
    (own,) = [one for one in found if len(one["labels"]) == 200]
    torch.testing.assert_close(own["images"][:7], expected, rtol=1e-4, atol=1e-4)


def test_heads_of_all_kinds_train_on_features(encoded):
    project, _ = encoded
    table = pd.read_csv(project.path / "results/tables/tiny/default.csv").set_index("method")
    assert set(table.index) == METHODS.keys()
    for method in ("ghofl", "afl", "fedcgs", "safle", "fedpft"):
        assert table.loc[method, "top1_accuracy"] > 40


def test_another_file_of_weights_makes_features_again(encoded):
    project, _ = encoded
    assert "features" not in project.plan().jobs
    path = project.path / "data/resnet18.pth"
    torch.save(weights(1), path)
    assert project.plan().jobs["features"] == 2
    torch.save(weights(0), path)
    assert "features" not in project.plan().jobs
